package snapshot

import (
	"fmt"

	"bole/lmdbstore"
)

// Info is the size and state of a repository.
type Info struct {
	Root        string       `json:"root"`
	Bare        bool         `json:"bare"`
	Shared      bool         `json:"shared"`
	NodeStore   string       `json:"node_store"`
	ContentsDir string       `json:"contents_dir"`
	Head        string       `json:"head"` // branch, or the commit's id when detached
	Commit      string       `json:"commit,omitempty"`
	Branches    int          `json:"branches"`
	Files       uint64       `json:"files"` // of HEAD's commit, links included
	Dirs        uint64       `json:"dirs"`
	Bytes       uint64       `json:"bytes"`
	Database    DatabaseInfo `json:"database"`
	Contents    ContentsInfo `json:"contents"`
}

// DatabaseInfo is the page use of the database; sizes are bytes.
type DatabaseInfo struct {
	FileSize  int64                `json:"file_size"`
	PageSize  int                  `json:"page_size"`
	MapSize   int64                `json:"map_size"`
	LastTxn   uint64               `json:"last_txn"`
	FreePages uint64               `json:"free_pages"`
	Readers   int                  `json:"readers"`
	Tables    map[string]TableInfo `json:"tables"`
}

// TableInfo is the page use of one table.
type TableInfo struct {
	Entries  uint64 `json:"entries"`
	Depth    uint   `json:"depth"`
	Branch   uint64 `json:"branch_pages"`
	Leaf     uint64 `json:"leaf_pages"`
	Overflow uint64 `json:"overflow_pages"`
	Bytes    uint64 `json:"bytes"`
}

// ContentsInfo is the use of packs and whole files.
type ContentsInfo struct {
	Contents  uint64 `json:"contents"`
	Packs     uint64 `json:"packs"`
	Whole     uint64 `json:"whole_files"`
	Bytes     uint64 `json:"bytes"`
	Allocated uint64 `json:"allocated"`
}

// Info gathers it from the stores; whole files are counted by a walk of their folders.
func (r *Repo) Info() (*Info, error) {
	head, err := r.Head()
	if err != nil {
		return nil, err
	}
	branches, err := r.Branches()
	if err != nil {
		return nil, err
	}
	i := &Info{Root: r.root, Bare: r.Bare(), Shared: r.cfg.Core.Shared, NodeStore: r.cfg.Core.NodeStore,
		ContentsDir: r.ContentsDir(), Head: head.Branch, Branches: len(branches)}
	if !head.Commit.IsZero() {
		i.Commit = head.Commit.String()
		e, err := r.Lookup(head.Commit, "")
		if err != nil {
			return nil, err
		}
		i.Files, i.Dirs, i.Bytes = e.Files, e.Dirs, e.Size
		if head.Branch == "" {
			i.Head = i.Commit
		}
	}
	if err := r.databaseInfo(i); err != nil {
		return nil, err
	}
	u, err := r.blobs.Usage()
	if err != nil {
		return nil, fmt.Errorf("use of contents: %w", err)
	}
	i.Contents = ContentsInfo{Contents: i.Database.Tables[lmdbstore.Blobs.String()].Entries, Packs: u.Packs, Whole: u.Whole,
		Bytes: u.PackBytes + u.WholeBytes, Allocated: u.PackAllocated + u.WholeAllocated}
	return i, nil
}

func (r *Repo) databaseInfo(i *Info) error {
	d, err := r.db.Info()
	if err != nil {
		return fmt.Errorf("use of the database: %w", err)
	}
	i.Database = DatabaseInfo{FileSize: d.FileSize, PageSize: d.PageSize, MapSize: d.MapSize, LastTxn: d.LastTxnID,
		FreePages: d.FreePages, Readers: d.Readers, Tables: map[string]TableInfo{}}
	for _, t := range d.Tables {
		i.Database.Tables[t.Name] = TableInfo{Entries: t.Entries, Depth: t.Depth, Branch: t.Branch, Leaf: t.Leaf,
			Overflow: t.Overflow, Bytes: t.Pages() * uint64(d.PageSize)}
	}
	return nil
}
