// Command treegen makes one of the trees of package treegen by hand:
//
//	go run ./internal/treegen/cmd bench DIR
//	go run ./internal/treegen/cmd flat N SIZE DIR
//	go run ./internal/treegen/cmd span FROM TO DIR
//	go run ./internal/treegen/cmd odd DIR
//
// It owns the reading of these words and nothing else.
package main

import (
	"fmt"
	"os"
	"strconv"

	"bole/internal/treegen"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "treegen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want bench DIR, flat N SIZE DIR, span FROM TO DIR or odd DIR")
	}
	kind, dir := args[0], args[len(args)-1]
	var n [2]int
	if kind == "flat" || kind == "span" {
		if len(args) != 4 {
			return fmt.Errorf("%s wants two numbers and a directory", kind)
		}
		for i := range n {
			v, err := strconv.Atoi(args[1+i])
			if err != nil || v < 0 {
				return fmt.Errorf("%s: %q is not a number", kind, args[1+i])
			}
			n[i] = v
		}
	} else if len(args) != 2 {
		return fmt.Errorf("%s wants a directory alone", kind)
	}
	switch kind {
	case "bench":
		return treegen.Bench(dir)
	case "flat":
		return treegen.Flat(dir, n[0], n[1])
	case "span":
		return treegen.Span(dir, n[0], n[1])
	case "odd":
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return treegen.Odd(dir)
	}
	return fmt.Errorf("no kind of tree is called %q", kind)
}
