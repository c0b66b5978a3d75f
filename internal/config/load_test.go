package config

import (
	"bytes"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

const example = "testdata/deckle.example.toml"

func readTestdata(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestExamplePasses(t *testing.T) {
	c, problems := Load(example)
	if c == nil || len(problems) > 0 {
		t.Fatalf("Load(example): %v", problems)
	}
	if got := c.Sites[0].Hosts; !slices.Equal(got, []string{"yukiblog.jp", "www.yukiblog.jp"}) {
		t.Errorf("hosts = %q", got)
	}
	if got, want := c.Auction.Currency.Rates["EUR"], big.NewRat(108, 100); got.Cmp(want) != 0 {
		t.Errorf("rate of EUR = %v, want exactly %v", got, want)
	}
	if got, want := c.Store.DataDir, filepath.Join("testdata", "data"); got != want {
		t.Errorf("data_dir = %q, want it beside the file: %q", got, want)
	}
	// Its template file is not beside it: that switches ads off, and is no error.
	problems = Examine(example)
	if len(problems.Errors()) > 0 || len(problems.Warnings()) != 1 || problems.Warnings()[0].Key != "site[0].templates" {
		t.Errorf("Examine(example): %v", problems)
	}
}

// TestExampleHasTheDefaults compares the example with a file that says only what
// has no default.
func TestExampleHasTheDefaults(t *testing.T) {
	least := []byte(`
[[site]]
id     = "yuki-site"
hosts  = ["yukiblog.jp", "www.yukiblog.jp"]
origin = "http://127.0.0.1:9000"
[auction.currency]
date  = "2026-11-30"
rates = { EUR = "1.08" }
[integrations.prebid]
`)
	got, d := parse(example, least)
	if len(d.problems) > 0 {
		t.Fatal(d.problems)
	}
	want, _ := parse(example, readTestdata(t, example))
	if got, want := dump(got), dump(want); got != want {
		t.Errorf("without its keys:\n%s\nwith them:\n%s", got, want)
	}
}

// dump prints a configuration; an empty list is the same as none.
func dump(c *Config) string { return fmt.Sprintf("%+v", *c) }

// A leaf is a key of the example with its value's place.
type leaf struct {
	path string
	val  *value
}

// leaves are all keys of a document, those of tables in values included.
func leaves(v *value, path string) []leaf {
	var out []leaf
	for _, f := range v.fields {
		out = append(out, leaf{join(path, f.name), f.val})
		out = append(out, leaves(f.val, join(path, f.name))...)
	}
	for i, e := range v.elems {
		out = append(out, leaves(e, fmt.Sprintf("%s[%d]", path, i))...)
	}
	return out
}

// withoutHeaders are the keys that are written as `key = value`.
func withoutHeaders(all []leaf) []leaf {
	return slices.DeleteFunc(all, func(l leaf) bool {
		return (l.val.kind == unstable.Table || l.val.kind == unstable.Array) && !l.val.closed
	})
}

func exampleLeaves(t testing.TB) ([]byte, []leaf) {
	t.Helper()
	data := readTestdata(t, example)
	d, _ := parseDocument(example, data)
	return data, withoutHeaders(leaves(d.root, ""))
}

var assignment = regexp.MustCompile(`^([\w-]+\s*=\s*)("[^"]*"|\[[^\]]*\]|\{[^}]*\}|[^\s,}#]+)`)

// set replaces the value of a key in the text of its document.
func set(t testing.TB, data []byte, l leaf, literal string) []byte {
	t.Helper()
	m := assignment.FindSubmatchIndex(data[l.val.key:])
	if m == nil {
		t.Fatalf("%s is not written as key = value", l.path)
	}
	return slices.Concat(data[:l.val.key+m[3]], []byte(literal), data[l.val.key+m[1]:])
}

func TestEveryKeyOfTheExampleHasAType(t *testing.T) {
	data, all := exampleLeaves(t)
	if len(all) < 90 {
		t.Fatalf("only %d keys found in the example", len(all))
	}
	for _, l := range all {
		other := `"x"`
		if l.val.kind == unstable.String {
			other = "false"
		}
		for _, literal := range []string{"1979-05-27", other} {
			mutant := set(t, data, l, literal)
			line := 1 + bytes.Count(data[:l.val.key], []byte("\n"))
			_, d := parse(example, mutant)
			named := slices.ContainsFunc(d.problems.Errors(), func(p Problem) bool { return p.Key == l.path && p.Line == line })
			if !named {
				t.Errorf("%s = %s is not an error of line %d: %v", l.path, literal, line, d.problems)
			}
		}
	}
}

func TestEveryKeyOfTheExampleHasToBeSpeltRight(t *testing.T) {
	data, all := exampleLeaves(t)
	for _, l := range all {
		end := l.val.key + bytes.IndexAny(data[l.val.key:], " =")
		mutant := slices.Concat(data[:end], []byte("_x"), data[end:])
		_, d := parse(example, mutant)
		named := slices.ContainsFunc(d.problems.Errors(), func(p Problem) bool { return p.Key == l.path+"_x" })
		if !named {
			t.Errorf("%s_x passes: %v", l.path, d.problems)
		}
	}
}

// switchedOn has, for every row of the tables in unbuilt.go, a value that it has
// to refuse.
var switchedOn = map[string]string{
	"site[0].origin":                      `""`,
	"site[0].rum_sample":                  "0.01",
	"integrations.prebid.cache":           "true",
	"integrations.prebid.forward_cookies": `["uids"]`,
	"integrations.aps.gvl":                "794",
	"consent.geo_file":                    `"public.pem"`,
	"consent.geo_headers":                 `{ country = "CF-IPCountry" }`,
	"consent.gvl_file":                    `"public.pem"`,
	"consent.unlisted_bidder":             `"allow"`,
	"identity.enabled":                    "true",
	"identity.key_file":                   `"secret.pem"`,
	"identity.eid_cookies":                `{ "sharedid.org" = "sharedId" }`,
	"reader.classifier":                   `"openai"`,
	"reader.openai":                       `{ model = "small" }`,
	"store.mode":                          `"clustered"`,
	"store.archive":                       `"s3://journal"`,
	"store.cluster":                       `{ node = "a" }`,
}

// switchedOnBelow has the same for keys that the example writes as the header of a
// table: a line below it.
var switchedOnBelow = map[string]string{
	"integrations.prebid.bidders": "rubicon = { gvl = 52 }",
}

func TestWhatIsNotBuiltIsRefused(t *testing.T) {
	var rows []string
	for _, u := range unbuiltSettings {
		rows = append(rows, u.key)
	}
	for _, u := range unbuiltOfSite {
		rows = append(rows, "site[0]."+u.key)
	}
	slices.Sort(rows)
	tested := slices.AppendSeq(slices.Collect(maps.Keys(switchedOn)), maps.Keys(switchedOnBelow))
	if slices.Sort(tested); !slices.Equal(rows, tested) {
		t.Fatalf("rows: %q\ntested: %q", rows, tested)
	}
	data, all := exampleLeaves(t)
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"public.pem": 0o644, "secret.pem": 0o600} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(path string, data []byte) {
		_, d := parse(filepath.Join(folder, "deckle.toml"), data)
		if !slices.ContainsFunc(d.problems.Errors(), func(p Problem) bool {
			return p.Key == path && strings.HasPrefix(p.Msg, "not built yet: ") && p.Line > 1
		}) {
			t.Errorf("%s: %v", path, d.problems)
		}
	}
	for path, line := range switchedOnBelow {
		header := "[" + path + "]"
		before, after, ok := strings.Cut(string(data), header)
		if !ok {
			t.Errorf("%s is no table of the example", path)
			continue
		}
		refused(path, []byte(before+header+"\n"+line+"\n"+after))
	}
	for path, literal := range switchedOn {
		i := slices.IndexFunc(all, func(l leaf) bool { return l.path == path })
		if i < 0 {
			t.Errorf("%s is no key of the example", path)
			continue
		}
		refused(path, set(t, data, all[i], literal))
	}
}

func TestSecretsAreFilesThatFewCanRead(t *testing.T) {
	data, all := exampleLeaves(t)
	i := slices.IndexFunc(all, func(l leaf) bool { return l.path == "identity.key_file" })
	folder := t.TempDir()
	for _, c := range []struct {
		name string
		mode os.FileMode
		want string
	}{
		{"private.key", 0o640, "not built yet: the ts-ec cookie"},
		{"open.key", 0o644, "everybody on this machine can read the secret in " + filepath.Join(folder, "open.key")},
		{"missing.key", 0, "stat " + filepath.Join(folder, "missing.key") + ": no such file or directory"},
	} {
		if c.mode != 0 {
			if err := os.WriteFile(filepath.Join(folder, c.name), nil, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(folder, c.name), c.mode); err != nil { // whatever the umask is
				t.Fatal(err)
			}
		}
		_, d := parse(filepath.Join(folder, "deckle.toml"), set(t, data, all[i], fmt.Sprintf("%q", c.name)))
		if errs := d.problems.Errors(); len(errs) != 1 || errs[0].Msg != c.want {
			t.Errorf("%s: %v, want %q", c.name, errs, c.want)
		}
	}
}

func TestSettingsAreReadInTheirUnits(t *testing.T) {
	c, d := parse("/etc/deckle/deckle.toml", []byte(`
[server]
drain_timeout   = "1m30s"
log_level       = "warn"
trusted_proxies = ["10.0.0.0/8", "2001:db8::/32"]
[[site]]
id         = "a"
hosts      = ["WWW.Example.COM", "2001:DB8::1"]
origin     = "HTTPS://Origin.Example:8443/"
templates  = "sites/a.toml"
html_cache = "private, max-age=0"
gpt_url    = "https://cdn.example/gpt.js?network-code=1"
preconnect = ["https://cdn.example/"]
schain     = [{ asi = "exchange.example", sid = "1234" }]
[auction]
timeout_ms        = 1_500
deadline_slack_ms = 20
bid_adjustment    = { rubicon = 0.9, kargo = "1.05" }
[integrations.prebid]
server_url = "https://pbs.example/prefix/"
[store]
data_dir = "/var/lib/deckle"
`))
	if len(d.problems) > 0 {
		t.Fatal(d.problems)
	}
	s := c.Sites[0]
	for _, check := range []struct{ what, got, want any }{
		{"drain_timeout", c.Server.DrainTimeout, 90 * time.Second},
		{"log_level", c.Server.LogLevel.String(), "WARN"},
		{"trusted_proxies", fmt.Sprint(c.Server.TrustedProxies), "[10.0.0.0/8 2001:db8::/32]"},
		{"hosts", fmt.Sprint(s.Hosts), "[www.example.com 2001:db8::1]"},
		{"origin", s.Origin.String(), "https://origin.example:8443"},
		{"templates", s.Templates, "/etc/deckle/sites/a.toml"},
		{"html_cache", s.HTMLCache, "private, max-age=0"},
		{"gpt_url", s.GPTURL, "https://cdn.example/gpt.js?network-code=1"},
		{"preconnect", fmt.Sprint(s.Preconnect), "[https://cdn.example]"},
		{"schain", fmt.Sprint(s.SChain), "[{exchange.example 1234}]"},
		{"timeout_ms", c.Auction.Timeout, 1500 * time.Millisecond},
		{"deadline_slack_ms", c.Auction.DeadlineSlack, 20 * time.Millisecond},
		{"bid_adjustment", fmt.Sprint(c.Auction.BidAdjustment), "map[kargo:21/20 rubicon:9/10]"},
		{"server_url", c.Integrations.Prebid.ServerURL, "https://pbs.example/prefix"},
		{"acme_cache", c.Server.ACMECache, "/var/lib/deckle/acme"},
	} {
		if check.got != check.want {
			t.Errorf("%s = %v, want %v", check.what, check.got, check.want)
		}
	}
}

func TestNothingOfAFileThatCannotBeReadIsJudged(t *testing.T) {
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Join(folder, "missing.toml")} {
		c, problems := Load(path)
		if c != nil || len(problems) != 1 || problems[0].Line != 0 || problems[0].File != path {
			t.Errorf("Load(%s) = %v, %v", path, c, problems)
		}
	}
}

// checkPlaces fails when a problem has no place in the file.
func checkPlaces(t *testing.T, data []byte, problems Problems) {
	t.Helper()
	lines := 1 + bytes.Count(data, []byte("\n"))
	for _, p := range problems {
		if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Column > len(data)+1 || p.Msg == "" {
			t.Errorf("a problem without a place: %+v", p)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(readTestdata(f, example))
	f.Add([]byte("\ufeff[server\r\nlisten = 8080\r\n[[site]]\nid = '''x'''"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, d := parse("deckle.toml", data)
		checkPlaces(t, data, d.problems)
		var whole map[string]any
		if err := toml.Unmarshal(d.data, &whole); err != nil && len(d.problems.Errors()) == 0 {
			t.Errorf("passes, and is no TOML: %v", err)
		}
	})
}
