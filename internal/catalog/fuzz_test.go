package catalog_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/go-json-experiment/json"

	"deckle/internal/catalog"
)

// Whatever is decoded is written and decoded as the same; whatever is not is named.
func FuzzDecode(f *testing.F) {
	for i, e := range []catalog.Entity{examplePublisher(), exampleSite("blog"), exampleAdvertiser(), exampleCampaign(), exampleCreative()} {
		f.Add(i, edit(f, e, nil))
	}
	for _, test := range invalid {
		for i, k := range catalog.Kinds() {
			if k == test.base.Kind() {
				f.Add(i, edit(f, test.base, test.with))
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		if kind < 0 || kind >= len(catalog.Kinds()) {
			return
		}
		k := catalog.Kinds()[kind]
		e, err := catalog.Decode(k, data)
		if err != nil {
			if invalid, ok := errors.AsType[*catalog.InvalidError](err); !ok || len(invalid.Problems) == 0 {
				t.Fatalf("got %v", err)
			}
			return
		}
		first, err := json.Marshal(e, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		again, err := catalog.Decode(k, first)
		if err != nil {
			t.Fatalf("%s is not decoded again: %v", first, err)
		}
		if second, _ := json.Marshal(again, json.Deterministic(true)); string(second) != string(first) {
			t.Fatalf("decoded again it is %s, was %s", second, first)
		}
	})
}

func FuzzDecodeDocument(f *testing.F) {
	data, err := json.Marshal(exampleDocument())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"delete": ["site/a"], "approvals": [{"site": "a", "creative": "b", "state": "approved"}]}`))
	w := newWorld(f, catalog.Config{})
	stop := w.run()
	w.big(3)
	stop() // what runs beside the fuzzer looks to it like news
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := catalog.DecodeDocument(data)
		if err == nil {
			_, err = w.Import(d)
		}
		if err != nil && !errors.Is(err, catalog.ErrInvalid) {
			t.Fatalf("got %v", err)
		}
	})
}

// A landing URL that is taken leads where it seems to.
func FuzzLandingURL(f *testing.F) {
	for _, s := range []string{"https://a.example/b?c#d", "http://a.example:80", "https://a.example\\@b.example/", "https://a.example/%20é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := formExample()
		e.LandingURL = s
		if s == "" || catalog.CheckCreativeForm(e) != nil {
			return
		}
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
			t.Errorf("%q is taken and is %+v, %v", s, u, err)
		}
	})
}
