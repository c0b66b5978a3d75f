package desk

import "deckle/internal/catalog"

// magazines are all there is to show. Two of them wait for approval.
func magazines() []magazine {
	return []magazine{ryokan(), ryokanInJapanese(), sleeper(), boots(), library(), islands(), islandsInWinter(), tea()}
}

func at(x, y float64) *catalog.Focus { return &catalog.Focus{X: x, Y: y} }

func ryokan() magazine {
	paper, ink, accent := "#f3ece0", "#2a2320", "#9c3b2a"
	return magazine{id: "hoshimi-four-seasons", advertiser: "hoshimi", name: "Four seasons", pages: []page{
		{picture: valley(autumn()), alt: "An inn with lit windows under red hills and a low moon", focus: at(0.5, 0.7), Page: catalog.Page{
			Tag: "Autumn", Headline: "The hills turn on a Tuesday", Sub: "Eleven rooms, one spring, no clocks",
			Background: "#3a1f26", Ink: "#fff3e4", Accent: "#f0b27a", Layout: "full",
		}},
		{Page: catalog.Page{
			Headline: "Water first", Background: paper, Ink: ink, Accent: accent, Layout: "text",
			Body: "The spring comes out of the rock at fifty-one degrees and has done so since before there was a road. We lead it through cedar into three baths. The middle one is the one you want at six in the morning, when the steam stands straight up and the crows are still arguing about who sleeps where.\n\nNobody will tell you when to get out.",
		}},
		{picture: valley(winter()), alt: "The same inn in snow, steam rising behind it", Page: catalog.Page{
			Headline: "In January the road closes", Caption: "The path from the station, 14 January", Background: "#dfe6ea", Ink: "#1d2a33", Accent: "#2f5d73", Layout: "split",
			Body: "Then there is the sledge, and Mr Sledge, which is what the children of the village call the horse. You will arrive with snow on your hat and soup will be on the table before you have found somewhere to put it.",
		}},
		{Page: catalog.Page{
			Tag: "Rooms from 28,000 yen", Headline: "Stay two nights. The first is for arriving.", Background: paper, Ink: ink, Accent: accent, Layout: "text",
			Body: "Dinner and breakfast are part of it. So is the walk to the waterfall, which takes forty minutes or a morning.", CTALabel: "See the rooms",
		}},
	}}
}

func ryokanInJapanese() magazine {
	paper, ink, accent := "#f6f1e6", "#231f1c", "#8f2f24"
	return magazine{id: "hoshimi-ja", advertiser: "hoshimi", name: "星見の四季", pages: []page{
		{picture: valley(winter()), alt: "雪の谷に灯る宿の窓", focus: at(0.5, 0.7), Page: catalog.Page{
			Tag: "冬", Headline: "雪の降る音を聴く宿", Sub: "十一室、湯ひとつ", Background: "#20303c", Ink: "#f4f7f8", Accent: "#bcd7e2", Layout: "full",
		}},
		{Page: catalog.Page{
			Headline: "湯は、道より古い", Background: paper, Ink: ink, Accent: accent, Layout: "text",
			Body: "岩の間から湧く湯は五十一度。道ができるよりもずっと前から、同じ温度で流れています。\n\n朝六時、まっすぐに立つ湯けむりの中で、時計のことは忘れてください。",
		}},
		{Page: catalog.Page{Headline: "一泊目は、着くために", Background: paper, Ink: ink, Accent: accent, Layout: "text", Body: "二泊からお受けしています。夕食と朝食、それから滝までの散歩つきです。", CTALabel: "お部屋を見る"}},
	}}
}

func sleeper() magazine {
	night, ink, accent := "#141a2e", "#eef1fb", "#f3c969"
	return magazine{id: "kestrel-night-line", advertiser: "kestrel", name: "The night line", pages: []page{
		{picture: nightTrain(), alt: "A train with lit windows crosses a dark plain under stars", focus: at(0.45, 0.72), Page: catalog.Page{
			Tag: "From 12 December", Headline: "Leave after dinner. Arrive before the bakery.", Background: night, Ink: ink, Accent: accent, Layout: "full",
		}},
		{Page: catalog.Page{
			Headline: "A bed, a door, a window that opens", Background: "#f4f1ea", Ink: "#1b2036", Accent: "#8a5a00", Layout: "text",
			Body: "Eleven carriages from the lake to the sea, every night but one. The bed is two metres long, because the man who drew it is. The lamp has two settings: reading, and gone.\n\nBreakfast is handed in at the border with the newspaper of whichever country it is by then.",
		}},
		{picture: timetable(), alt: "A line with seven stops from a lake to the sea, with the hours between them", Page: catalog.Page{
			Headline: "Seven stops, one of them yours", Caption: "Winter timetable, valid to 10 June", Background: "#f4f1ea", Ink: "#1b2036", Accent: "#8a5a00", Layout: "split",
		}},
		{Page: catalog.Page{Headline: "A cabin for one, from 79", Sub: "Bicycles sleep in carriage three", Background: night, Ink: ink, Accent: accent, Layout: "text", CTALabel: "Choose a night"}},
	}}
}

func boots() magazine {
	moss, ink, accent := "#e8e6d8", "#26301f", "#7a4a16"
	return magazine{id: "pell-resoled", advertiser: "pell-moor", name: "Resoled, not replaced", pages: []page{
		{picture: contours(), alt: "A dotted path across the contour lines of a hill", Page: catalog.Page{
			Tag: "No. 4 boot", Headline: "This pair has been up there nine times", Sub: "Its soles, twice", Background: "#33402b", Ink: "#f6f4e6", Accent: "#e0b46c", Layout: "full",
		}},
		{Page: catalog.Page{
			Headline: "What wears out is meant to", Background: moss, Ink: ink, Accent: accent, Layout: "text",
			Body: "A sole is a tyre. The upper is the car. We stitch the one to the other so that a cobbler can take it off again in an afternoon, and we keep the lasts of every boot since 1971 in a dry room, so that yours comes back the shape of your foot and not of somebody's idea of one.",
		}},
		{Page: catalog.Page{Tag: "Resoling, 65", Headline: "Send them muddy", Background: moss, Ink: ink, Accent: accent, Layout: "text", Body: "We would rather see where they have been.", CTALabel: "Find your size"}},
	}}
}

func library() magazine {
	cream, ink, accent := "#fbf6ea", "#2b2a33", "#3a4fa0"
	return magazine{id: "margin-pocket-library", advertiser: "margin", name: "The pocket library", pages: []page{
		{picture: spines(), alt: "Eight small books on a shelf, one of them leaning, and room for a ninth", focus: at(0.5, 0.55), Page: catalog.Page{
			Tag: "New", Headline: "Nine books that fit a coat", Background: "#f0d9b5", Ink: "#2b2a33", Accent: "#7a2e1d", Layout: "full",
		}},
		{Page: catalog.Page{
			Headline: "Printed for reading standing up", Background: cream, Ink: ink, Accent: accent, Layout: "text",
			Body: "Each is the length of one journey: an hour, three, a night. The type is large enough for a tunnel, the paper is thin enough for a pocket, and there is a wide margin, since that is where a reader lives.",
		}},
		{Page: catalog.Page{Headline: "The first three, for 24", Sub: "A walk, a crossing, a delay", Background: cream, Ink: ink, Accent: accent, Layout: "text", CTALabel: "See all nine"}},
	}}
}

func islands() magazine {
	sea, ink, accent := "#0f4c5c", "#f2fbfb", "#ffd9a0"
	return magazine{id: "saltline-nine-islands", advertiser: "saltline", name: "Nine islands", pages: []page{
		{picture: archipelago(noonSea()), alt: "Islands in a bright sea, and the wake of a ferry between them", focus: at(0.5, 0.6), Page: catalog.Page{
			Tag: "One ticket, thirty days", Headline: "Get off where it smells of bread", Background: sea, Ink: ink, Accent: accent, Layout: "full",
		}},
		{Page: catalog.Page{
			Headline: "There is no wrong boat", Background: "#eef6f4", Ink: "#12343b", Accent: "#a2541b", Layout: "text",
			Body: "They all go round. The slow one stops at every jetty, to hand over a crate of lemons and take on two goats, and gets you there a day later than the fast one. People who have taken both ask for the slow one.",
		}},
		{Page: catalog.Page{Headline: "Thirty days on the water, 190", Sub: "Children and folding chairs go free", Background: sea, Ink: ink, Accent: accent, Layout: "text", CTALabel: "See the crossings"}},
	}}
}

func islandsInWinter() magazine {
	return magazine{id: "saltline-winter", advertiser: "saltline", name: "The empty season", landing: "https://www.empty-season.example/", waits: true, pages: []page{
		{picture: archipelago(winterSea()), alt: "Grey islands in a grey sea under a pale sun", focus: at(0.5, 0.6), Page: catalog.Page{
			Tag: "November to March", Headline: "The islands, without anybody on them", Background: "#2c3a45", Ink: "#eef3f5", Accent: "#c9d8df", Layout: "full",
		}},
		{Page: catalog.Page{Headline: "The café is shut. The owner is not.", Background: "#eef1f2", Ink: "#22303a", Accent: "#33607a", Layout: "text", Body: "Knock. There is soup, and it is about the weather.", CTALabel: "Winter crossings"}},
	}}
}

func tea() magazine {
	return magazine{id: "teasel-flask", advertiser: "teasel", name: "A flask for the train", waits: true, pages: []page{
		{picture: flask(), alt: "A flask and a cup at a window, steam rising", focus: at(0.45, 0.6), Page: catalog.Page{
			Tag: "Smoked black", Headline: "The best seat is the one with tea", Background: "#5b3a29", Ink: "#fff4e2", Accent: "#ffc98a", Layout: "full",
		}},
		{Page: catalog.Page{Headline: "Four minutes, then the tunnel", Background: "#f7efe3", Ink: "#33241b", Accent: "#8a4512", Layout: "text", Body: "It is strong enough to be left alone, and it does not mind being poured twice.", CTALabel: "Try a tin"}},
	}}
}
