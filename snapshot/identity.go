package snapshot

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"bole/merkle"
)

// ErrIdentity is returned for an author that is not of the form "Name <mail>".
var ErrIdentity = errors.New(`not of the form "Name <mail@host>"`)

// Identity is the author of commits made now: the repository's configuration,
// then the user's, then BOLE_USER_NAME and BOLE_USER_EMAIL, then the account
// and host. It always has an answer.
func (r *Repo) Identity() merkle.Signature {
	name, email := r.cfg.User.Name, r.cfg.User.Email
	if path, err := UserConfigPath(); err == nil {
		if c, err := ReadConfig(path); err == nil {
			name, email = first(name, c.User.Name), first(email, c.User.Email)
		}
	}
	account := "unknown"
	if u, err := user.Current(); err == nil {
		account = u.Username
		name = first(name, os.Getenv("BOLE_USER_NAME"), u.Name)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	name = first(name, os.Getenv("BOLE_USER_NAME"), account)
	email = first(email, os.Getenv("BOLE_USER_EMAIL"), account+"@"+host)
	return signatureAt(crudless(name), crudless(email), time.Now())
}

// crudless leaves out the bytes that a signature cannot hold, as git does with
// names that come from the account's record.
func crudless(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(signatureBad, r) {
			return -1
		}
		return r
	}, s)
}

// signatureBad are the bytes that would make a "Name <mail>" ambiguous.
const signatureBad = "\x00\n<>"

// ParseIdentity reads "Name <mail@host>" and dates it now. Neither may be empty
// or hold a NUL, a newline, '<' or '>'.
func ParseIdentity(s string) (merkle.Signature, error) {
	name, rest, open := strings.Cut(s, "<")
	email, after, closed := strings.Cut(rest, ">")
	name, email = strings.TrimSpace(name), strings.TrimSpace(email)
	if !open || !closed || name == "" || email == "" || strings.TrimSpace(after) != "" ||
		strings.ContainsAny(name+email, signatureBad) {
		return merkle.Signature{}, fmt.Errorf("author %q: %w", s, ErrIdentity)
	}
	return signatureAt(name, email, time.Now()), nil
}

func signatureAt(name, email string, t time.Time) merkle.Signature {
	_, offset := t.Zone()
	return merkle.Signature{Name: name, Email: email, When: t.UnixNano(), Zone: int16(offset / 60)}
}

// who is the name in a reflog.
func (r *Repo) who() string {
	s := r.Identity()
	return s.Name + " <" + s.Email + ">"
}

func first(s ...string) string {
	for _, v := range s {
		if v = strings.TrimSpace(v); v != "" {
			return v
		}
	}
	return ""
}
