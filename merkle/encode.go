package merkle

// appendHeader appends the 40-byte header of a Dir or VNode.
func appendHeader(b []byte, kind byte, level, count int, entries uint64, t Totals) []byte {
	b = append(b, kind, formatVersion, byte(level), 0)
	b = le.AppendUint32(b, uint32(count))
	b = le.AppendUint64(b, entries)
	b = le.AppendUint64(b, t.Files)
	b = le.AppendUint64(b, t.Dirs)
	return le.AppendUint64(b, t.Bytes)
}

// EmptyDir returns the name and the bytes of a directory without entries.
func EmptyDir() (Hash, []byte) {
	b := appendHeader(nil, kindDir, 0, 0, 0, Totals{})
	return NodeHash(b), b
}

// appendEntry encodes e, called name, as a record of level 0 without its heap
// end, and appends its heap item. The caller has checked e.
func appendEntry(record, item, name []byte, e *Entry) (_, _ []byte) {
	record = append(record, e.Hash[:]...)
	record = le.AppendUint64(record, e.Size)
	record = le.AppendUint64(record, uint64(e.Mtime))
	record = le.AppendUint32(record, 0)
	record = le.AppendUint16(record, uint16(e.Kind)<<modeShift|e.Perm)
	flags := byte(0)
	if !e.Attrs.IsZero() {
		flags |= flagAttrs
	}
	record = append(record, byte(len(name)), flags)

	item = append(item, name...)
	if e.Kind == KindDir {
		item = le.AppendUint64(item, e.Files)
		item = le.AppendUint64(item, e.Dirs)
	}
	if flags&flagAttrs != 0 {
		item = append(item, e.Attrs[:]...)
	}
	return record, append(item, e.Target...)
}

// appendIndex encodes the record of a node in its parent without its heap end;
// the heap item is the node's first name.
func appendIndex(record []byte, h Hash, entries uint64, t Totals) []byte {
	record = append(record, h[:]...)
	record = le.AppendUint64(record, entries)
	record = le.AppendUint64(record, t.Files)
	record = le.AppendUint64(record, t.Dirs)
	record = le.AppendUint64(record, t.Bytes)
	return le.AppendUint32(record, 0)
}

// sum adds up what the records of n say of entries and totals, from the
// records alone. The fault is "" when the records are in bounds and the sums
// fit 64 bits.
func (n *node) sum() (entries uint64, t Totals, fault string) {
	var e Entry
	for i := 0; i < n.count; i++ {
		var u Totals
		count, fits := uint64(1), true
		if n.level == 0 {
			if fault := n.entry(i, &e); fault != "" {
				return 0, t, fault
			}
			u, fits = e.weight()
		} else {
			rec := n.record(i)
			count = n.below(i)
			u = Totals{Files: le.Uint64(rec[40:]), Dirs: le.Uint64(rec[48:]), Bytes: le.Uint64(rec[56:])}
		}
		entries += count
		if !t.add(u) || !fits || entries < count {
			return 0, t, "totals exceed 64 bits"
		}
	}
	return entries, t, ""
}
