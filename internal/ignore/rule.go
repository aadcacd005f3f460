package ignore

import "strings"

// rule is one line of a pattern file. Nearly all lines are plain names or
// "*.ext", which need no pattern matching: prefix is compared first, and glob
// holds what follows it.
type rule struct {
	negated  bool // "!": what matches is not ignored
	dirOnly  bool // the line ended in "/"
	anchored bool // the line holds another "/": matched against the whole path below the file's directory
	suffix   bool // "*literal" matched against a name: prefix holds the literal
	prefix   string
	glob     []token // nil: nothing may follow prefix
}

// parseLine reads one line without its newline. ok is false for a line that
// can match nothing. The rules are those of gitignore(5) and, where it is
// silent, of git's behaviour: a carriage return before the newline does not
// count, a NUL byte ends the line, and of blanks only unescaped spaces at the
// end are cut.
func parseLine(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = strings.TrimSuffix(line, "\r")
	if i := strings.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	line = trimSpaces(line)
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	special := strings.IndexAny(line, `*?[\`)
	if special < 0 {
		r.prefix = line
		return r, true
	}
	if !r.anchored && special == 0 && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`) {
		r.suffix, r.prefix = true, line[1:]
		return r, true
	}
	r.prefix = line[:special]
	r.glob, ok = compile(line[special:])
	return r, ok
}

// trimSpaces cuts the spaces at the end of a line. A backslash keeps the
// character after it, whatever that is.
func trimSpaces(line string) string {
	end := 0 // behind the last byte that stays
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
			if i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// match tells whether the rule speaks about a path; rel is the path below the
// directory of the rule's file and name its last component.
func (r *rule) match(rel, name string) bool {
	if r.suffix {
		return strings.HasSuffix(name, r.prefix)
	}
	text := name
	if r.anchored {
		text = rel
	}
	if !strings.HasPrefix(text, r.prefix) {
		return false
	}
	text = text[len(r.prefix):]
	if r.glob == nil {
		return text == ""
	}
	return matchTokens(r.glob, text)
}
