package snapshot

// children are what a child process of a test can do.
var children = map[string]func(args []string) error{}
