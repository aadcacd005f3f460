package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bole/merkle"
	"bole/snapshot"
)

type commitFlags struct {
	messages           []string
	file, author, date string
	allowEmpty, asJSON bool
}

func newCommitCmd(a *app) *cobra.Command {
	var o commitFlags
	cmd := &cobra.Command{
		Use:   "commit -m MESSAGE",
		Short: "make a commit of what add recorded",
		Long: `Makes a commit of what 'bole add' recorded. The message comes from -m (given several
times, each is a paragraph), from a file (-F, "-" is standard input), or on a terminal
from $VISUAL or $EDITOR.

Exit code 1 when there is nothing to commit, or when the branch has moved since this
working directory was brought to it.`,
		Example: `  bole commit -m "pictures of May"
  bole commit -F message.txt --author "Ada Lovelace <ada@example.org>"
  bole commit --allow-empty -m "a mark"`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			meta, err := o.meta()
			if err != nil {
				return err
			}
			if meta.Message, err = o.message(); err != nil {
				return err
			}
			return a.withRepo(func(r *snapshot.Repo) error {
				if err := o.setDate(r, &meta); err != nil {
					return err
				}
				return a.commit(r, meta, o.asJSON)
			})
		},
	}
	o.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&o.allowEmpty, "allow-empty", false, "also when nothing has changed")
	return cmd
}

// addTo adds the flags that every command has that makes a commit.
func (o *commitFlags) addTo(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.messages, "message", "m", nil, "`TEXT` of the message; repeated: paragraphs")
	f.StringVarP(&o.file, "file", "F", "", "read the message from `FILE`")
	f.StringVar(&o.author, "author", "", `"NAME <MAIL>" of who made the change`)
	f.StringVar(&o.date, "date", "", "when the change was made: RFC 3339 or @SECONDS since 1970")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
}

// meta is all of a commit's data but the message; zero fields mean "now, by me".
func (o commitFlags) meta() (m snapshot.Meta, err error) {
	m.AllowEmpty = o.allowEmpty
	if o.author != "" {
		if m.Author, err = snapshot.ParseIdentity(o.author); err != nil {
			return m, &usageError{err}
		}
	}
	return m, nil
}

// setDate dates the author; a signature without a name is the Identity's.
func (o commitFlags) setDate(r *snapshot.Repo, m *snapshot.Meta) error {
	if o.date == "" {
		return nil
	}
	t, err := parseDate(o.date)
	if err != nil {
		return err
	}
	if m.Author.Name == "" {
		m.Author = r.Identity()
	}
	_, offset := t.Zone()
	m.Author.When, m.Author.Zone = t.UnixNano(), int16(offset/60)
	return nil
}

// parseDate reads RFC 3339 (also with a blank for the T, and without a zone: local), a day, or @SECONDS.
func parseDate(s string) (time.Time, error) {
	var seconds int64
	if n, err := fmt.Sscanf(s, "@%d", &seconds); err == nil && n == 1 && fmt.Sprintf("@%d", seconds) == s {
		return time.Unix(seconds, 0), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05 -0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--date %q is neither like 2006-01-02T15:04:05+01:00 nor like @1136214245", s)
}

func (a *app) commit(r *snapshot.Repo, meta snapshot.Meta, asJSON bool) error {
	ctx, stop := a.interruptible()
	defer stop()
	id, c, err := r.CommitStaged(ctx, meta)
	if err != nil {
		return err
	}
	var n counts
	if len(c.Parents) == 0 {
		n.added = c.Totals.Files + c.Totals.Dirs
	} else if err := r.Diff(c.Parents[0], id, "", n.add); err != nil {
		return fmt.Errorf("count the changes of %s: %w", id, err)
	}
	head, err := r.Head()
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(struct {
			commitJSON
			Branch string `json:"branch,omitempty"`
			countsJSON
		}{newCommitJSON(id, c), head.Branch, n.json()})
	}
	name := head.Branch
	if name == "" {
		name = "no branch"
	}
	fmt.Fprintf(a.out, "[%s %s] %s\n", quote(name), colorID(shortID(id)), subject(c.Message))
	fmt.Fprintf(a.out, " %s; the commit holds %s, %s, %s\n", n, count(c.Totals.Files, "file"),
		count(c.Totals.Dirs, "directory"), size(c.Totals.Bytes))
	return nil
}

// counts says how many entries differ, by kind of change.
type counts struct{ added, modified, deleted, typed uint64 }

type countsJSON struct {
	Added       uint64 `json:"added"`
	Modified    uint64 `json:"modified"`
	Deleted     uint64 `json:"deleted"`
	TypeChanged uint64 `json:"type_changed"`
}

func (n counts) json() countsJSON { return countsJSON{n.added, n.modified, n.deleted, n.typed} }

// onlyTime says whether a folder differs in nothing but its time, which follows
// from what was added or removed in it.
func onlyTime(c snapshot.PathChange) bool {
	return c.Old != nil && c.New != nil && c.Old.Kind == merkle.KindDir && c.New.Kind == merkle.KindDir &&
		c.Old.Perm == c.New.Perm && c.Old.Attrs == c.New.Attrs
}

// add counts one change; it is a callback of snapshot's diffs.
func (n *counts) add(c snapshot.PathChange) error {
	if onlyTime(c) {
		return nil
	}
	switch c.Kind {
	case snapshot.Added:
		n.added++
	case snapshot.Modified:
		n.modified++
	case snapshot.Deleted:
		n.deleted++
	case snapshot.TypeChanged:
		n.typed++
	}
	return nil
}

func (n counts) String() string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{{n.added, "added"}, {n.modified, "modified"}, {n.deleted, "deleted"}, {n.typed, "changed type"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "no changes"
	}
	return strings.Join(parts, ", ")
}
