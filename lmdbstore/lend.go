package lmdbstore

// In builds with the tag invariants bytes are lent as copies, which are
// overwritten when they die, and a Reader is not used for a second View: a
// stale use is wrong at once and each time.

// scribble is what dead bytes hold.
const scribble = 0xDB

// lend returns a copy of b that dies with the View.
func (r *Reader) lend(b []byte) []byte {
	c := append(make([]byte, 0, len(b)), b...)
	r.lent = append(r.lent, c)
	return c
}

// retire scribbles over everything that r has lent, makes r unusable and
// returns a fresh Reader on the same transaction.
func (r *Reader) retire() *Reader {
	scribbleOver(r.lent)
	fresh := &Reader{s: r.s, txn: r.txn}
	*r = Reader{}
	return fresh
}

func scribbleOver(lent [][]byte) {
	for _, b := range lent {
		for i := range b {
			b[i] = scribble
		}
	}
}
