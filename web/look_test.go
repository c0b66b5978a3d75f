package web_test

import (
	"fmt"
	"os"
	"testing"

	"deckle/internal/sim/browser"
)

// TestLook makes pictures of the magazine in every shape, for people to look at:
// SCREENSHOTS=folder go test -run TestLook ./web
func TestLook(t *testing.T) {
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS names no folder")
	}
	b := browser.Start(t)
	s := startReaderSite(t, readerPage{tag: true, head: `<style>body{margin:24px;background:#fff;font:16px/1.5 sans-serif}.row{display:flex;flex-wrap:wrap;gap:24px;align-items:start;margin-bottom:24px}</style>`, body: `
		<div class=row><div data-deckle-slot="a" data-w="970" data-h="250"></div></div>
		<div class=row><div data-deckle-slot="b" data-w="728" data-h="90"></div><div data-deckle-slot="c" data-w="320" data-h="100"></div><div data-deckle-slot="d" data-w="320" data-h="50"></div></div>
		<div class=row><div data-deckle-slot="e" data-w="300" data-h="250"></div><div data-deckle-slot="f" data-w="300" data-h="600"></div><div data-deckle-slot="g" data-w="160" data-h="600"></div><div data-deckle-slot="h" data-w="336" data-h="280"></div></div>`})
	s.change(func(s *readerSite) {
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			s.winners[id] = winner{creative: "c-" + id, campaign: "k-" + id, json: ferry}
		}
	})
	page := b.Open(t, s.url, browser.View{Width: 1200, Height: 1300})
	page.WaitFor(`document.querySelectorAll('deckle-magazine').length === 8`)
	page.WaitFor(allReady)
	page.Screenshot("closed")
	browser.Eval[any](page, `void document.querySelectorAll('deckle-magazine').forEach((m, i) => { m.dataset.pinnedPage = String(i % 5); m.creative = m.creative })`)
	page.WaitFor(allReady)
	browser.Eval[any](page, settle)
	page.Screenshot("folded")

	for _, look := range []struct {
		name string
		view browser.View
		page readerPage
		json string
	}{
		{"desktop", browser.View{Width: 1366, Height: 860}, readerPage{tag: true}, ferry},
		{"phone", browser.Phone(), readerPage{tag: true}, ferry},
		{"small", browser.View{Width: 360, Height: 640}, readerPage{tag: true}, ferry},
		{"landscape", browser.View{Width: 844, Height: 390}, readerPage{tag: true}, ferry},
		{"tablet", browser.View{Width: 820, Height: 1180}, readerPage{tag: true}, ferry},
		{"rtl", browser.View{Width: 1366, Height: 860}, readerPage{tag: true, html: `lang="ar" dir="rtl"`}, arabic},
		{"rtl-phone", browser.Phone(), readerPage{tag: true, html: `lang="ar" dir="rtl"`}, arabic},
		{"vertical", browser.View{Width: 1366, Height: 860}, readerPage{tag: true, html: `lang="ja" style="writing-mode:vertical-rl"`}, ryokan},
		{"vertical-phone", browser.Phone(), readerPage{tag: true, html: `lang="ja" style="writing-mode:vertical-rl"`}, ryokan},
		{"ja-phone", browser.Phone(), readerPage{tag: true, html: `lang="ja"`}, ryokan},
	} {
		t.Run(look.name, func(t *testing.T) {
			s := startReaderSite(t, look.page)
			s.change(func(s *readerSite) { s.winners["sidebar-1"] = winner{creative: "c", campaign: "k", json: look.json} })
			page := b.Open(t, s.url, look.view)
			page.WaitFor(`document.querySelector('deckle-magazine')`)
			page.WaitFor(allReady)
			page.Screenshot("slot-" + look.name)
			browser.Eval[any](page, `void document.querySelector('deckle-magazine').expand()`)
			count := browser.Eval[int](page, `document.querySelector('deckle-magazine').creative.pages.length`)
			for i := range count {
				browser.Eval[any](page, settle)
				if i == 2 {
					browser.Eval[any](page, `void document.querySelector('deckle-magazine').shadowRoot.querySelector('.corner').click()`)
					browser.Eval[any](page, settle)
				}
				page.Screenshot(fmt.Sprintf("open-%s-%d", look.name, i+1))
				browser.Eval[any](page, `void document.querySelector('deckle-magazine').shadowRoot.querySelector('.next').click()`)
			}
		})
	}
}

const ryokan = `"landingUrl":"https://ryokan.example/","pages":[
	{"tag":"箱根・強羅","headline":"湯けむりの宿で、何もしない二日間","sub":"秋の山をひとり歩く人のために","image":{"src":"/pictures/winter-light.svg","alt":"朝霧の山","focus":{"x":0.5,"y":0.5}},"background":"#1f2a28","ink":"#f7f2e6","accent":"#e2c48f"},
	{"headline":"朝、山が近い","body":"障子を開けると、杉の匂いがする。六時の鐘が鳴るころ、湯はまだ誰のものでもない。\n朝食は土鍋の飯、川魚、蕗の煮物。仲居は多くを語らない。窓の外では、夜のあいだに降った雨が葉から葉へとゆっくり落ちていく。時計は部屋に置いていない。昼までに読み終える本を一冊、それだけを鞄に入れてお越しください。\n帰りの電車は一時間に二本。乗り遅れても、次がある。","image":{"src":"/pictures/the-old-post-road.svg","alt":"山道","focus":{"x":0.5,"y":0.5}},"background":"#f6f1e4","ink":"#2a2520","accent":"#8a3d20"},
	{"tag":"ご予約","headline":"一泊二食、二万四千円から","body":"平日は送迎がございます。","background":"#6b2b1e","ink":"#fff6e8","accent":"#f0c98a","ctaLabel":"空室を見る"}]`

const arabic = `"landingUrl":"https://hotel.example/","pages":[
	{"tag":"رحلات","headline":"نم في بلد واستيقظ في آخر","sub":"تسع رحلات بحرية تستحق مقصورة","image":{"src":"/pictures/night-ferry.svg","alt":"عبّارة","focus":{"x":0.5,"y":0.4}},"background":"#1d1a36","ink":"#fdf6ea","accent":"#ffd9a8"},
	{"tag":"على متن السفينة","headline":"الساعة التي تلي الميناء","body":"في العاشرة يغلق المقهى نافذته ويصبح السطح لأربعة بقوا فيه. تصير المدينة خلفنا خيطًا ثم شيئًا ربما تخيلناه. أحضر أحدهم برتقالًا.\nخذ المقصورة الخارجية. ثمنها ثمن غداء متواضع، وعند الخامسة تتحول النافذة من السواد إلى زرقة لا اسم لها.","image":{"src":"/pictures/reading-a-harbour.svg","alt":"ميناء","focus":{"x":0.5,"y":0.5}},"background":"#faf6ee","ink":"#231f1a","accent":"#97391f"},
	{"tag":"احجز","headline":"تسعة خطوط ومفتاح واحد","body":"كل مساء من أبريل إلى نوفمبر.","background":"#143642","ink":"#f6f1e7","accent":"#e9b66a","ctaLabel":"اختر رحلتك"}]`

const (
	allReady = `[...document.querySelectorAll('deckle-magazine')].every((m) => [...m.shadowRoot.querySelectorAll('img')].every((i) => i.complete && i.naturalWidth > 0))`
	settle   = `new Promise((done) => setTimeout(done, 900))`
)
