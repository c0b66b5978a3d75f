package template_test

import (
	"fmt"

	"deckle"
	"deckle/internal/template"
)

func Example() {
	slots := []deckle.Slot{{ID: "atf_sidebar_ad", DivID: "sidebar"}, {ID: "front_ad", DivID: "front"}}
	t, err := template.New(template.Settings{Enabled: true}, slots, []template.Patterns{
		{Include: []string{"/20**"}, Exclude: []string{"/2024/sponsored/**"}},
		{Include: []string{"/", "/news{,/**}"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, target := range []string{"/2024/01/my-article/?utm_source=x", "/2024/sponsored/x", "/news"} {
		path := template.Normalize(target)
		for _, i := range t.Match(path, nil) {
			fmt.Println(path, t.Slots[i].ID)
		}
	}
	// Output:
	// /2024/01/my-article/ atf_sidebar_ad
	// /news front_ad
}
