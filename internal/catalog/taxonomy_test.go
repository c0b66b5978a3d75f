package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckle/internal/catalog"
)

func TestBuiltInTaxonomies(t *testing.T) {
	for _, test := range []struct {
		t    *catalog.Taxonomy
		n    int
		some map[string]string
	}{
		{catalog.ContentTaxonomy(), 37, map[string]string{"653": "Travel", "464": "Science", "JLBCU7": "Entertainment", "v9i3On": "Sensitive Topics"}},
		{catalog.ProductTaxonomy(), 45, map[string]string{"1529": "Travel and Tourism", "1002": "Alcohol", "1361": "Gambling"}},
	} {
		if got := len(test.t.Categories()); got != test.n {
			t.Errorf("%s has %d categories, want %d", test.t.Name, got, test.n)
		}
		if test.t.Source == "" || test.t.Date == "" || !test.t.FirstTierOnly {
			t.Errorf("%s does not say what it is: %q, %q", test.t.Name, test.t.Source, test.t.Date)
		}
		for id, want := range test.some {
			if got, ok := test.t.CategoryName(id); !ok || got != want || test.t.Parent(id) != "" {
				t.Errorf("%s: %s is %q, want %q", test.t.Name, id, got, want)
			}
		}
	}
}

// published has what is odd in the tables as the IAB publishes them: a line of
// titles above the header, spaces, empty lines, and categories that are their own
// parents.
const published = "Relational ID System\t\t\tTiers\t\t\n" +
	"Unique ID\tParent\tName\tTier 1\tTier 2\tTier 3\n" +
	"1000\t1000\tRisk\tRisk\t\t\n" +
	"1010\t\tBusiness \tBusiness\t\t\n" +
	"1036\t1010\tIndustrials\tBusiness\tIndustrials\t\n" +
	"1037\t1037\tAerospace\tBusiness\tIndustrials\tAerospace\n" +
	"\n" +
	"1259\t\tDating\t\t\t\n" +
	"A1b2C3\t1036\tTools\tBusiness\tIndustrials\tTools"

func TestLoadTaxonomy(t *testing.T) {
	tax, err := catalog.LoadTaxonomy("Published", strings.NewReader(published))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1000", "1010", "1036", "1037", "1259", "A1b2C3"}; !slices.Equal(tax.Categories(), want) {
		t.Errorf("categories are %q, want %q", tax.Categories(), want)
	}
	for id, want := range map[string]string{"1000": "", "1010": "", "1036": "1010", "1037": "1036", "1259": "", "A1b2C3": "1036"} {
		if got := tax.Parent(id); got != want {
			t.Errorf("the parent of %s is %q, want %q", id, got, want)
		}
	}
	if name, _ := tax.CategoryName("1010"); name != "Business" || tax.FirstTierOnly {
		t.Errorf("1010 is %q", name)
	}
}

func TestTaxonomiesThatAreRefused(t *testing.T) {
	const header = "Unique ID\tParent\tName\n"
	for _, test := range []struct{ name, table, want string }{
		{"empty", "", "has no header"},
		{"no header", "1\t\tA\n", "has no header"},
		{"twice", header + "1\t\tA\n1\t\tB\n", `line 3: "1" is there twice`},
		{"no parent", header + "1\t7\tA\n", `line 2: the parent "7" of "1" is not there`},
		{"cycle", header + "1\t2\tA\n2\t3\tB\n3\t1\tC\n", `line 2: "1" is in or below a cycle of parents`},
		{"id", header + "a b\t\tA\n", `line 2: "a b" is not an id`},
		{"name", header + "1\t\t\n", `line 2: "1" has no name`},
		{"too many", manyRows(header, 20_001), "line 20002: more than 20000 categories"},
	} {
		_, err := catalog.LoadTaxonomy("T", strings.NewReader(test.table))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %.300v, want %s", test.name, err, test.want)
		}
	}
	if _, err := catalog.LoadTaxonomy("T", strings.NewReader(header+"1\t\t"+strings.Repeat("x", 1<<20))); err == nil {
		t.Error("a line of a megabyte is taken")
	}
}

func manyRows(header string, n int) string {
	var b strings.Builder
	b.WriteString(header)
	for i := range n {
		fmt.Fprintf(&b, "%d\t\tA\n", i)
	}
	return b.String()
}

func FuzzLoadTaxonomy(f *testing.F) {
	f.Add(published)
	f.Add("Unique ID\tParent\tName\n1\t2\tA\n2\t1\tB")
	f.Fuzz(func(t *testing.T, table string) {
		tax, err := catalog.LoadTaxonomy("T", strings.NewReader(table))
		if err != nil {
			return
		}
		for _, id := range tax.Categories() {
			tiers := 0
			for at := id; at != ""; at = tax.Parent(at) {
				if _, ok := tax.CategoryName(at); !ok {
					t.Fatalf("%q leads to %q, which is not there", id, at)
				}
				if tiers++; tiers > 100 {
					t.Fatalf("%q is in a cycle", id)
				}
			}
		}
	})
}

func TestReadTaxonomies(t *testing.T) {
	dir := t.TempDir()
	content, products, err := catalog.ReadTaxonomies(dir)
	if err != nil || !content.FirstTierOnly || !products.FirstTierOnly {
		t.Errorf("of an empty folder: %v", err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("content.tsv", published)
	content, products, err = catalog.ReadTaxonomies(dir)
	if err != nil || content.FirstTierOnly || content.Parent("1036") != "1010" || content.Name != "IAB Content Taxonomy 3.0" || !products.FirstTierOnly {
		t.Errorf("of one file: %v", err)
	}
	if got, _ := catalog.New(nil, nil, catalog.Config{Content: content}).Taxonomies(); got != content {
		t.Error("the catalog does not say what it knows")
	}
	write("ad-product.tsv", "nonsense")
	if _, _, err := catalog.ReadTaxonomies(dir); !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), "ad-product.tsv") {
		t.Errorf("of a bad file: %v", err)
	}
}
