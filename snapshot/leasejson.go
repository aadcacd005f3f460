package snapshot

import (
	"encoding/json"
	"unicode/utf8"
)

// leaseFile is a lease as its file holds it. JSON text is UTF-8, but paths and
// revisions are any bytes: those that are not UTF-8 stand in Raw, by the field's
// name, and the field itself is only for people.
type leaseFile struct {
	leaseFields
	Raw map[string][]byte `json:"raw,omitempty"`
}

// leaseFields is LeaseInfo without its methods.
type leaseFields LeaseInfo

func (l *leaseFields) texts() map[string]*string {
	return map[string]*string{"repository": &l.Repository, "mountpoint": &l.Mountpoint, "revision": &l.Revision,
		"path": &l.Path, "socket": &l.Socket, "log": &l.Log}
}

// MarshalJSON writes the format of a lease's file.
func (l LeaseInfo) MarshalJSON() ([]byte, error) {
	f := leaseFile{leaseFields: leaseFields(l)}
	for name, s := range f.texts() {
		if utf8.ValidString(*s) {
			continue
		}
		if f.Raw == nil {
			f.Raw = map[string][]byte{}
		}
		f.Raw[name] = []byte(*s)
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads the format of a lease's file.
func (l *LeaseInfo) UnmarshalJSON(b []byte) error {
	var f leaseFile
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	for name, s := range f.texts() {
		if raw, ok := f.Raw[name]; ok {
			*s = string(raw)
		}
	}
	*l = LeaseInfo(f.leaseFields)
	return nil
}
