package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "devel"

func newVersionCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Long:    "Prints the version of this program, the commit it was built from, and of what.",
		Example: "  bole version\n  bole version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := newVersionJSON()
			if asJSON {
				return a.printJSON(v)
			}
			fmt.Fprintf(a.out, "bole %s", v.Version)
			if v.Commit != "" {
				fmt.Fprintf(a.out, " (%s)", v.Commit[:min(len(v.Commit), shortDigits)])
			}
			fmt.Fprintf(a.out, " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"` // built from a changed work tree
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionJSON() versionJSON {
	v := versionJSON{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if version == "devel" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
