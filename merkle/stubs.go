package merkle

import (
	"errors"
	"iter"
)

var errStub = errors.New("not there yet")

type Dir struct{ totals Totals }

func OpenDir(r Reader, h *Hash) (Dir, error)                { return Dir{}, errStub }
func (d *Dir) Len() uint64                                  { return 0 }
func (d *Dir) Totals() Totals                               { return d.totals }
func (d *Dir) Hash() Hash                                   { return Hash{} }
func (d *Dir) Lookup(name []byte, e *Entry) (uint64, error) { return 0, errStub }
func (d *Dir) At(ordinal uint64, e *Entry) error            { return errStub }
func (d *Dir) Seek(ordinal uint64) Cursor                   { return Cursor{} }
func (d *Dir) SeekName(name []byte) Cursor                  { return Cursor{} }
func (d *Dir) NodeHashes(dst []Hash) []Hash                 { return dst }

type Cursor struct{}

func (c *Cursor) Next(e *Entry) (bool, error)   { return false, errStub }
func (c *Cursor) Ordinal() uint64               { return 0 }
func (c *Cursor) LeavesAhead(dst []Hash) []Hash { return dst }
func (c *Cursor) DirsAhead(dst []Hash) []Hash   { return dst }

type Op uint8

const (
	OpSet Op = iota + 1
	OpMeta
	OpRemove
)

type Change struct {
	Path  []byte
	Op    Op
	Entry Entry
}

func Apply(r Reader, w Writer, base Hash, changes iter.Seq2[Change, error]) (Hash, Totals, error) {
	return Hash{}, Totals{}, errStub
}
func EmptyDir() (Hash, []byte)         { return Hash{}, nil }
func CheckDir(r Reader, h *Hash) error { return errStub }

type DiffEntry struct {
	Path     []byte
	Old, New *Entry
}

var SkipDir = errors.New("skip this directory")

func Diff(r Reader, a, b Hash, fn func(DiffEntry) error) error { return errStub }

type Signature struct {
	Name, Email string
	When        int64
	Zone        int16
}
type Field struct {
	Key   string
	Value []byte
}
type Commit struct {
	Tree              Hash
	Totals            Totals
	RootPerm          uint16
	RootMtime         int64
	RootAttrs         Hash
	Parents           []Hash
	Author, Committer Signature
	Message           string
	Fields            []Field
}

func (c *Commit) Encode() ([]byte, error)             { return nil, errStub }
func DecodeCommit(h *Hash, b []byte) (*Commit, error) { return nil, errStub }
func (c *Commit) Field(key string) ([]byte, bool)     { return nil, false }

type Attr struct {
	Name  string
	Value []byte
}

func EncodeAttrs(attrs []Attr) ([]byte, error)              { return nil, errStub }
func DecodeAttrs(h *Hash, b []byte) ([]Attr, error)         { return nil, errStub }
func AttrValue(b []byte, name string) ([]byte, bool, error) { return nil, false, errStub }

const MaxNode = 4 << 20
const MaxDepth = 4096

type NodeKind uint8

const (
	NodeCommit NodeKind = iota + 1
	NodeDir
	NodeVNode
	NodeAttrs
)

func Check(h *Hash, b []byte) (NodeKind, error) { return 0, errStub }

type ChildKind uint8

const (
	ChildNode ChildKind = iota + 1
	ChildContent
)

type Child struct {
	Hash  Hash
	Kind  ChildKind
	Node  NodeKind
	Name  []byte
	Entry *Entry
	Size  uint64
}

func (c *Child) Verify(b []byte) error                       { return errStub }
func Children(h *Hash, b []byte, fn func(Child) error) error { return errStub }
func KindOf(b []byte) NodeKind                               { return 0 }
