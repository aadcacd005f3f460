package fs

import (
	"errors"
	"testing"

	"bole/merkle"
)

func TestParseIO(t *testing.T) {
	for m := IOAuto; m <= IOHandles; m++ {
		if got, err := ParseIO(m.String()); err != nil || got != m {
			t.Errorf("%s: %v %v", m, got, err)
		}
	}
	for _, s := range []string{"", "Auto", "direct", "IO(9)", IO(9).String()} {
		if _, err := ParseIO(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestKernelRelease(t *testing.T) {
	for _, c := range []struct {
		name, version string
		want          release
		safe          bool
	}{
		{"6.18.44-fc-v669", "#1 SMP", release{6, 18, 44}, true},
		{"6.18.2", "", release{6, 18, 2}, false},
		{"6.18.3", "", release{6, 18, 3}, true},
		{"6.18.0-rc4", "", release{6, 18, 0}, false},
		{"6.19.0", "", release{6, 19, 0}, true},
		{"6.19.0-3-amd64", "", release{6, 19, -1}, true},
		{"7.1.2-arch1-1", "", release{7, 1, 2}, true},
		{"6.17.13", "", release{6, 17, 13}, false},
		{"6.12.63", "", release{6, 12, 63}, false},
		{"6.12.64", "", release{6, 12, 64}, true},
		{"6.12.48+deb13-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1 (2025-09-20)", release{6, 12, 48}, false},
		{"6.9.0", "", release{6, 9, 0}, false},
		{"6.8.12", "", release{6, 8, 12}, true},
		{"6.8.0-90-generic", "#91-Ubuntu SMP", release{6, 8, -1}, false},
		{"6.6.113", "", release{6, 6, 113}, true},
		{"6.6.114", "", release{6, 6, 114}, false},
		{"6.6.119", "", release{6, 6, 119}, false},
		{"6.6.120", "", release{6, 6, 120}, true},
		{"6.1.0-37-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)", release{6, 1, 140}, true},
		{"6.1.0-41-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.158-1 (2025-11-09)", release{6, 1, 158}, false},
		{"6.1.0-41-amd64", "#1 SMP", release{6, 1, -1}, false},
		{"5.15.195", "", release{5, 15, 195}, true},
		{"5.15.197", "", release{5, 15, 197}, false},
		{"5.15.198", "", release{5, 15, 198}, true},
		{"5.14.0-570.el9.x86_64", "", release{5, 14, -1}, false},
		{"5.10.245", "", release{5, 10, 245}, true},
		{"5.10.250", "", release{5, 10, 250}, false},
		{"4.19.1", "", release{4, 19, 1}, true},
		{"6.5", "", release{6, 5, 0}, true},
	} {
		got, err := parseRelease(c.name, c.version)
		if err != nil || got != c.want {
			t.Errorf("%s (%s): %v %v, want %v", c.name, c.version, got, err, c.want)
		}
		if got.statelessSafe() != c.safe {
			t.Errorf("%s (%s): safe %v", c.name, c.version, !c.safe)
		}
	}
	for _, s := range []string{"", "x", "6", "six.one"} {
		if r, err := parseRelease(s, ""); err == nil {
			t.Errorf("%q: %v", s, r)
		}
	}
	if _, err := runningKernel(); err != nil {
		t.Error(err)
	}
}

func TestChooseIO(t *testing.T) {
	large := &merkle.Entry{Size: 10 << 20, Files: 10}
	small := &merkle.Entry{Size: 10<<20 - 1, Files: 10}
	empty := &merkle.Entry{}
	fixed, broken, old := release{6, 18, 44}, release{6, 17, 1}, release{6, 1, 100}
	for _, c := range []struct {
		o    Options
		k    release
		priv bool
		root *merkle.Entry
		want IO
	}{
		{Options{}, fixed, true, large, IOPassthrough},
		{Options{}, fixed, false, large, IOStateless},
		{Options{}, fixed, true, small, IOStateless},
		{Options{}, fixed, true, empty, IOStateless},
		{Options{}, broken, true, small, IOHandles},
		{Options{}, broken, true, large, IOPassthrough},
		{Options{}, old, true, large, IOStateless},
		{Options{Verify: true}, fixed, true, small, IOHandles},
		{Options{Verify: true}, fixed, true, large, IOPassthrough},
		{Options{IO: IOStateless, Verify: true}, broken, true, large, IOStateless},
		{Options{IO: IOHandles}, fixed, true, large, IOHandles},
		{Options{IO: IOPassthrough}, fixed, true, empty, IOPassthrough},
	} {
		got, err := chooseIO(c.o, c.k, c.priv, c.root)
		if err != nil || got != c.want {
			t.Errorf("%+v on %v: %v %v, want %v", c.o, c.k, got, err, c.want)
		}
	}
	for _, c := range []struct {
		k    release
		priv bool
	}{{fixed, false}, {old, true}} {
		if _, err := chooseIO(Options{IO: IOPassthrough}, c.k, c.priv, large); !errors.Is(err, ErrNoPassthrough) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
