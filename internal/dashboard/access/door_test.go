package access

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const secret = "correct horse battery"

// cheap is a hash of secret with the least parameters that are read, so that tests
// do not spend their time on it.
func cheap(password string) string {
	h := phc{memory: 19 << 10, time: 1, threads: 1, salt: []byte("saltsalt")}
	h.sum = h.of([]byte(password), 16)
	return h.String()
}

func door(t *testing.T) (*Door, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	write(t, path, cheap(secret)+"\n")
	d, err := OpenDoor(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d, path
}

var home = netip.MustParseAddr("127.0.0.1")

func TestHashPassword(t *testing.T) {
	text, err := HashPassword([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	h, err := parsePHC([]byte(text + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !h.matches([]byte(secret)) || h.matches([]byte(secret+" ")) || h.matches(nil) {
		t.Error("the hash matches another password, or not its own")
	}
	if other, _ := HashPassword([]byte(secret)); other == text {
		t.Error("two hashes have one salt")
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 1025), "correct horse\nbattery", "correct horse \xff battery"} {
		if _, err := HashPassword([]byte(bad)); err == nil {
			t.Errorf("%.20q was taken for a password", bad)
		}
	}
}

func TestBadPasswordFilesRefuseTheStart(t *testing.T) {
	good := cheap(secret)
	for name, text := range map[string]string{
		"empty":              "",
		"a plain password":   secret,
		"argon2i":            strings.Replace(good, "argon2id", "argon2i", 1),
		"bcrypt":             "$2y$10$abcdefghijklmnopqrstuv",
		"another version":    strings.Replace(good, "v=19", "v=16", 1),
		"no parameters":      strings.Replace(good, "m=19456,", "", 1),
		"too little memory":  strings.Replace(good, "m=19456", "m=8", 1),
		"a bomb":             strings.Replace(good, "m=19456", "m=4194304", 1),
		"too many passes":    strings.Replace(good, "t=1", "t=1000", 1),
		"no lanes":           strings.Replace(good, "p=1", "p=0", 1),
		"a lane too many":    strings.Replace(good, "p=1", "p=257", 1),
		"bad base64":         good[:len(good)-3] + "***",
		"no hash":            good[:strings.LastIndex(good, "$")+1],
		"two lines":          good + "\n" + good,
		"leading zeros":      strings.Replace(good, "t=1", "t=01", 1),
		"further parameters": strings.Replace(good, "p=1", "p=1,x=2", 1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "password")
			write(t, path, text)
			if _, err := OpenDoor(path, slog.New(slog.DiscardHandler)); err == nil {
				t.Error("the door opened")
			} else if strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells what was in the file: %v", err)
			}
		})
	}
}

func TestWithoutAPasswordNobodyGetsIn(t *testing.T) {
	d, err := OpenDoor("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(d.Closed(), ErrNoPassword) {
		t.Errorf("Closed = %v", d.Closed())
	}
	if _, err := d.LogIn(t.Context(), home, "ana", ""); !errors.Is(err, ErrNoPassword) {
		t.Errorf("LogIn = %v", err)
	}
	if _, ok := d.Session(""); ok {
		t.Error("a session")
	}
}

func TestSessions(t *testing.T) {
	d, path := door(t)
	synctest.Test(t, func(t *testing.T) {
		d.hashing = make(chan struct{}, hashers) // of this bubble
		logIn := func() string {
			t.Helper()
			token, err := d.LogIn(t.Context(), home, "ana", secret)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		is := func(token string, want bool) {
			t.Helper()
			s, ok := d.Session(token)
			if ok != want || ok && s.Name != "ana" {
				t.Errorf("Session = %+v, %v; want %v", s, ok, want)
			}
		}
		token := logIn()
		is(token, true)
		is(token+"x", false)
		is("", false)
		d.LogOut(token)
		is(token, false)

		token = logIn()
		time.Sleep(SessionIdle - time.Second)
		is(token, true)
		time.Sleep(SessionIdle)
		is(token, false)

		token = logIn()
		for range int(SessionAge/time.Hour) - 1 {
			time.Sleep(time.Hour)
			is(token, true)
		}
		time.Sleep(time.Hour)
		is(token, false)

		// The one that was idle longest gives way.
		first, second := logIn(), logIn()
		time.Sleep(time.Second)
		is(first, true)
		for range maxSessions - 1 {
			time.Sleep(time.Second)
			d.open("ana", cheap(secret), home)
		}
		is(second, false)
		is(first, true)

		write(t, path, cheap("another password, longer"))
		is(first, false)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := d.LogIn(t.Context(), home, "ana", secret); !errors.Is(err, ErrNoPassword) {
			t.Errorf("without the file: %v", err)
		}
	})
}

func TestTriesAreLimited(t *testing.T) {
	d, _ := door(t)
	synctest.Test(t, func(t *testing.T) {
		d.hashing = make(chan struct{}, hashers)
		try := func(from, name, password string) error {
			_, err := d.LogIn(t.Context(), netip.MustParseAddr(from), name, password)
			return err
		}
		for range triesPerAddress - 1 {
			if err := try("192.0.2.1", "ana", "wrong"); !errors.Is(err, ErrWrong) {
				t.Fatalf("err = %v", err)
			}
		}
		if err := try("192.0.2.1", "a name that cannot be one", secret); !errors.Is(err, ErrWrong) {
			t.Fatalf("err = %v", err)
		}
		// Even the right password has to wait now; from elsewhere it does not.
		many, ok := errors.AsType[*TooMany](try("::ffff:192.0.2.1", "ana", secret))
		if !ok || many.RetryAfter != addressInterval {
			t.Fatalf("err = %v", many)
		}
		if err := try("192.0.2.2", "ana", secret); err != nil {
			t.Fatal(err)
		}
		time.Sleep(many.RetryAfter - time.Second)
		if _, ok := errors.AsType[*TooMany](try("192.0.2.1", "ana", secret)); !ok {
			t.Error("let in too early")
		}
		time.Sleep(time.Second)
		if err := try("192.0.2.1", "ana", secret); err != nil {
			t.Errorf("after the time that was named: %v", err)
		}
	})
}

func TestTriesFromEverywhereAreLimited(t *testing.T) {
	d, _ := door(t)
	now := time.Now()
	allowed := 0
	addr := netip.MustParseAddr("2001:db8::1")
	for range triesTotal * 3 {
		if d.allow(addr, now) == nil {
			allowed++
		}
		b := addr.As16()
		b[7]++ // the next /64
		addr = netip.AddrFrom16(b)
	}
	if allowed != triesTotal {
		t.Errorf("%d tries at once, want %d", allowed, triesTotal)
	}
	within := 0
	for range triesPerAddress * 2 {
		b := netip.MustParseAddr("2001:db8:1::").As16()
		b[15]++
		if d.allow(netip.AddrFrom16(b), now.Add(time.Hour)) == nil {
			within++
		}
	}
	if within != triesPerAddress {
		t.Errorf("%d tries from one /64, want %d", within, triesPerAddress)
	}
}

func TestAddressesAreBounded(t *testing.T) {
	d, _ := door(t)
	now := time.Now()
	for i := range maxAddresses + 100 {
		_ = d.allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(d.from) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(d.from))
	}
	_ = d.allow(home, now.Add(24*time.Hour))
	if len(d.from) != 1 {
		t.Errorf("%d addresses are remembered a day later", len(d.from))
	}
}

func TestHashingIsBounded(t *testing.T) {
	d, _ := door(t)
	for range hashers {
		d.hashing <- struct{}{}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the browser has gone"))
	if _, err := d.LogIn(ctx, home, "ana", secret); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v: it did not wait for a place", err)
	}
}
