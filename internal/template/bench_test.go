package template_test

import (
	"fmt"
	"testing"

	"deckle/internal/template"
)

// site makes n slots with five patterns each, as a large publisher has them, and
// a path that matches three of the slots, of one length for every n.
func site(n int) (patterns []template.Patterns, path string) {
	for i := range n {
		section := fmt.Sprintf("section-%03d", i/3)
		patterns = append(patterns, template.Patterns{
			Include: []string{
				"/" + section + "{,/**}",
				"/20*/" + section + "/**",
				"/en/" + section + "/*/reviews/*",
				fmt.Sprintf("/topics/%s-%d", section, i),
			},
			Exclude: []string{"/" + section + "/sponsored/**"},
		})
	}
	return patterns, fmt.Sprintf("/section-%03d/2024/01/what-to-see-in-lisbon-in-march/", n/6)
}

// wildcardSite makes n slots whose five patterns all begin with a wildcard.
func wildcardSite(n int) (patterns []template.Patterns, path string) {
	for i := range n {
		topic := fmt.Sprintf("topic-%03d", i/3)
		patterns = append(patterns, template.Patterns{
			Include: []string{"/**/" + topic + "/*", "/*/" + topic + "{,/}", "/**-" + topic + ".html", "/??/" + topic + "/**"},
			Exclude: []string{"/**/" + topic + "/sponsored**"},
		})
	}
	return patterns, fmt.Sprintf("/travel/2024/topic-%03d/what-to-see-in-lisbon-in-march", n/6)
}

func BenchmarkMatch(b *testing.B) {
	for _, s := range []struct {
		name string
		site func(int) ([]template.Patterns, string)
	}{{"", site}, {"wildcard-first/", wildcardSite}} {
		for _, n := range []int{10, 200, 2000} {
			patterns, path := s.site(n)
			tmpl := newTemplate(b, patterns...)
			dst := make([]int, 0, template.MaxSlotsPerPage)
			b.Run(fmt.Sprintf("%sslots=%d", s.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					dst = tmpl.Match(path, dst[:0])
				}
				if len(dst) != 3 {
					b.Fatalf("Match(%q) = %v, want three slots", path, dst)
				}
			})
		}
	}
}

// BenchmarkMatchScan is what Match replaces: every pattern of every slot, by the
// reference matcher.
func BenchmarkMatchScan(b *testing.B) {
	for _, n := range []int{10, 200, 2000} {
		patterns, path := site(n)
		b.Run(fmt.Sprintf("slots=%d", n), func(b *testing.B) {
			for b.Loop() {
				if got := refSet(patterns, path); len(got) != 3 {
					b.Fatalf("%v, want three slots", got)
				}
			}
		})
	}
}

// BenchmarkMatchCold asks paths none of which has been asked before.
func BenchmarkMatchCold(b *testing.B) {
	patterns, _ := site(2000)
	tmpl := newTemplate(b, patterns...)
	dst := make([]int, 0, template.MaxSlotsPerPage)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dst = tmpl.Match(fmt.Sprintf("/2024/section-%03d/%x", i%700, i*7919), dst[:0])
	}
}

func BenchmarkNormalize(b *testing.B) {
	for _, target := range []string{"/section-001/2024/what-to-see-in-lisbon?utm=x", "/section-001/caf%C3%A9/../2024/what-to-see"} {
		b.Run(target[1:16], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				template.Normalize(target)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	patterns, _ := site(2000)
	slots := slotsFor(patterns)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := template.New(template.Settings{}, slots, patterns); err != nil {
			b.Fatal(err)
		}
	}
}
