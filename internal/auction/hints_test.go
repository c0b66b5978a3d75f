package auction_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/auction"
)

func TestReadClientHints(t *testing.T) {
	chromium := []auction.BrandVersion{{Brand: "Chromium", Version: []string{"131"}}, {Brand: `Not"A\Brand`, Version: []string{"24"}}}
	for name, tt := range map[string]struct {
		header map[string]string
		want   *auction.ClientHints
	}{
		"none": {nil, nil},
		"what a browser sends by itself": {
			map[string]string{"Sec-CH-UA": `"Chromium";v="131", "Not\"A\\Brand";v="24"`, "Sec-CH-UA-Mobile": "?0", "Sec-CH-UA-Platform": `"macOS"`},
			&auction.ClientHints{Browsers: chromium, Mobile: new(false), Platform: auction.BrandVersion{Brand: "macOS"}},
		},
		"what it was asked for": {
			map[string]string{
				"Sec-CH-UA": `"Chromium";v="131"`, "Sec-CH-UA-Full-Version-List": `"Chromium";v="131.0.6778.85"`, "Sec-CH-UA-Mobile": "?1",
				"Sec-CH-UA-Platform": `"Android"`, "Sec-CH-UA-Platform-Version": `"14.0.0"`, "Sec-CH-UA-Arch": `""`, "Sec-CH-UA-Bitness": `"64"`, "Sec-CH-UA-Model": `"Pixel 8"`,
			},
			&auction.ClientHints{
				Browsers: []auction.BrandVersion{{Brand: "Chromium", Version: []string{"131", "0", "6778", "85"}}}, Mobile: new(true),
				Platform: auction.BrandVersion{Brand: "Android", Version: []string{"14", "0", "0"}}, Bitness: "64", Model: "Pixel 8", HighEntropy: true,
			},
		},
		"a brand without a version":    {map[string]string{"Sec-CH-UA": `"A" , "B";v="1"`}, &auction.ClientHints{Browsers: []auction.BrandVersion{{Brand: "A"}, {Brand: "B", Version: []string{"1"}}}}},
		"a list that breaks off":       {map[string]string{"Sec-CH-UA": `"A";v="1", "B`}, nil},
		"a list that is none":          {map[string]string{"Sec-CH-UA": `A;v=1`}, nil},
		"an escape that is none":       {map[string]string{"Sec-CH-UA": `"A\n"`}, nil},
		"bytes that are no text":       {map[string]string{"Sec-CH-UA": "\"A\xff\""}, nil},
		"a list that is too long":      {map[string]string{"Sec-CH-UA": `"` + strings.Repeat("a", 1024) + `"`}, nil},
		"a platform in markup":         {map[string]string{"Sec-CH-UA-Platform": `"<b>", "x"`}, nil},
		"a mobile that is no boolean":  {map[string]string{"Sec-CH-UA-Mobile": "yes"}, nil},
		"more brands than there are":   {map[string]string{"Sec-CH-UA": strings.TrimSuffix(strings.Repeat(`"A",`, 20), ",")}, &auction.ClientHints{Browsers: make16("A")}},
		"a token in place of a string": {map[string]string{"Sec-CH-UA-Platform": "Linux"}, &auction.ClientHints{Platform: auction.BrandVersion{Brand: "Linux"}}},
	} {
		h := http.Header{}
		for k, v := range tt.header {
			h.Set(k, v)
		}
		if diff := cmp.Diff(tt.want, auction.ReadClientHints(h)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func make16(brand string) (bs []auction.BrandVersion) {
	for range 16 {
		bs = append(bs, auction.BrandVersion{Brand: brand})
	}
	return bs
}

func FuzzReadClientHints(f *testing.F) {
	f.Add(`"Chromium";v="131", "Not\"A\\Brand";v="24"`, `"macOS"`)
	f.Fuzz(func(t *testing.T, list, item string) {
		h := auction.ReadClientHints(http.Header{"Sec-Ch-Ua": {list}, "Sec-Ch-Ua-Platform": {item}})
		if h == nil {
			return
		}
		if len(h.Browsers) > 16 || len(h.Platform.Brand) > 1024 {
			t.Errorf("%d brands, a platform of %d bytes", len(h.Browsers), len(h.Platform.Brand))
		}
	})
}
