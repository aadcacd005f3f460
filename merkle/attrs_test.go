package merkle

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAttrsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.MapOfN(rapid.StringMatching(`user\.[^\x00b][^\x00]{0,20}`), rapid.SliceOfN(rapid.Byte(), 0, 50), 1, 20).Draw(rt, "attrs")
		var attrs []Attr
		for name, value := range m {
			attrs = append(attrs, Attr{name, value})
		}
		b, err := EncodeAttrs(attrs)
		if err != nil {
			rt.Fatal(err)
		}
		slices.Reverse(attrs)
		if again, err := EncodeAttrs(attrs); err != nil || !bytes.Equal(b, again) {
			rt.Fatal("the order of the attributes shows in the bytes", err)
		}
		h := NodeHash(b)
		if kind, err := Check(&h, b); err != nil || kind != NodeAttrs {
			rt.Fatal(kind, err)
		}
		got, err := DecodeAttrs(&h, b)
		if err != nil || len(got) != len(m) {
			rt.Fatal(len(got), err)
		}
		for i, a := range got {
			if !bytes.Equal(a.Value, m[a.Name]) || i > 0 && got[i-1].Name >= a.Name {
				rt.Fatalf("attribute %d is %q: %q", i, a.Name, a.Value)
			}
			if v, ok, err := AttrValue(b, a.Name); !ok || err != nil || !bytes.Equal(v, a.Value) {
				rt.Fatalf("AttrValue(%q): %q, %v, %v", a.Name, v, ok, err)
			}
			if v, ok, err := AttrValue(b, a.Name+"\x00"); ok || err != nil {
				rt.Fatalf("AttrValue of nothing: %q, %v", v, err)
			}
		}
	})
}

func TestAttrsRefuses(t *testing.T) {
	for name, attrs := range map[string][]Attr{
		"none":         nil,
		"no prefix":    {{"security.x", nil}},
		"only prefix":  {{"user.", nil}},
		"upper case":   {{"USER.x", nil}},
		"virtual":      {{"user.bole.hash", nil}},
		"NUL":          {{"user.a\x00", nil}},
		"long name":    {{"user." + strings.Repeat("x", 251), nil}},
		"long value":   {{"user.x", make([]byte, MaxAttrValue+1)}},
		"twice":        {{"user.x", nil}, {"user.y", nil}, {"user.x", []byte{1}}},
		"one is wrong": {{"user.x", nil}, {"x", nil}},
	} {
		if _, err := EncodeAttrs(attrs); !errors.Is(err, ErrBadAttr) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"user.x", "user.bole", "user.bolex", "user." + strings.Repeat("x", 250), "user.\xff"} {
		if b, err := EncodeAttrs([]Attr{{name, make([]byte, MaxAttrValue)}}); err != nil || KindOf(b) != NodeAttrs {
			t.Errorf("%q: %v", name, err)
		}
	}
	var many []Attr
	for i := range 65 {
		many = append(many, Attr{fmt.Sprintf("user.%d", i), make([]byte, MaxAttrValue)})
	}
	if _, err := EncodeAttrs(many); !errors.Is(err, ErrTooLarge) {
		t.Errorf("65 of 64 KiB: %v", err)
	}
}

func TestAttrValueAllocatesNothing(t *testing.T) {
	b, err := EncodeAttrs([]Attr{{"user.a", []byte("1")}, {"user.b", []byte("2")}, {"user.c", nil}})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if v, ok, err := AttrValue(b, "user.b"); !ok || err != nil || len(v) != 1 {
			t.Fatal(v, ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
