package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"deckle/internal/serve"
)

// newWhyAnswer tells an explanation in words.
func newWhyAnswer(w *words, e *serve.Explanation) *whyAnswer {
	a := &whyAnswer{
		Site: e.Site, At: e.At, Stale: e.Stale, About: whence(e), Gone: e.StalePins,
		More: e.LeftOut, Weight: strconv.FormatFloat(e.BidWeight, 'g', 3, 64),
	}
	for _, c := range e.Categories {
		source := sources[c.Source]
		if source == "" {
			source = c.Source
		}
		a.Categories = append(a.Categories, whyCategory{w.category(c.ID), c.ID, source, percent(c.Confidence, true)})
	}
	candidates := map[string]*serve.ExplainedCandidate{}
	for i := range e.Candidates {
		c := &e.Candidates[i]
		candidates[c.Creative] = c
		a.Candidates = append(a.Candidates, w.candidate(c))
	}
	for i := range e.Slots {
		a.Slots = append(a.Slots, w.slot(&e.Slots[i], candidates))
	}
	a.Steps = funnel(e)
	return a
}

// whence says how fresh what is known of the page is.
func whence(e *serve.Explanation) string {
	date := func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") + " UTC" }
	switch {
	case e.ClassifiedAt.IsZero():
		return "Nobody has said what this page is about: no category rule of the site fits its path, and no reader has been there since its head was last read. Without that nothing is auctioned."
	case e.Stale && e.At.After(e.FreshUntil):
		return "Found out on " + date(e.ClassifiedAt) + ", which is longer ago than the site allows. Until somebody looks again, nothing is auctioned."
	}
	return "Found out on " + date(e.ClassifiedAt) + ", and good until " + date(e.FreshUntil) + "."
}

// funnel are the steps of the page as a narrowing: each is drawn against the first.
func funnel(e *serve.Explanation) (steps []whyStep) {
	most := 1
	for _, s := range e.Steps {
		most = max(most, s.In, s.Out)
	}
	for _, s := range e.Steps {
		text := stepWords[s.Name]
		if text == "" {
			text = s.Name
		}
		steps = append(steps, whyStep{
			Name: s.Name, Text: text, In: s.In, Out: s.Out,
			Meter: meter{About: fmt.Sprintf("%d of %d", s.Out, most), Full: number(float64(s.Out) / float64(most) * 100)},
		})
	}
	return steps
}

func (w *words) candidate(c *serve.ExplainedCandidate) whyCandidate {
	say := sayingOf(c.Fate)
	out := whyCandidate{About: w.creative(c.Creative), Of: w.of(c.Campaign, c.Advertiser), Fate: say.text, Badge: say.badge}
	out.Wanted = fmt.Sprintf("%s × %s", w.category(c.Category), strconv.FormatFloat(c.Affinity, 'f', 2, 64))
	if c.Recent {
		out.Fate += "; shown to this browser just now, and avoided where there is another"
	}
	out.Texts = []string{w.cpm(c.Bid), "–", "–", "–", "–"}
	if s := c.Score; s != nil {
		out.Texts = []string{
			w.cpm(c.Bid), percent(s.MeanEngagement, true), percent(s.SampledEngagement, true), decimal(s.Score),
			fmt.Sprintf("%s shown; lately %s, %s clicks, %s folds", count(s.Shown), decimal(s.Impressions), decimal(s.Clicks), decimal(s.Folds)),
		}
	}
	return out
}

// decimal writes a figure of statistics: three digits that count.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

func (w *words) slot(e *serve.ExplainedSlot, candidates map[string]*serve.ExplainedCandidate) whySlot {
	s := whySlot{ID: e.ID, Size: fmt.Sprintf("%d×%d", e.W, e.H), More: e.LeftOut}
	switch {
	case e.Outcome == "honored":
		s.Winner, s.Verdict = w.creative(e.Creative), "The reader has bookmarked it in this slot."
		s.Because = []string{"Bookmarks come first, and are free: nothing is auctioned, no budget is touched, and no frequency cap, pacing or floor applies."}
	case e.Creative != "":
		s.Winner = w.creative(e.Creative)
		w.winner(&s, e, candidates)
	default:
		s.Verdict = emptiness[e.Outcome]
		if s.Verdict == "" {
			s.Verdict = strings.ReplaceAll(e.Outcome, "_", " ")
		}
	}
	if c := candidates[e.Creative]; c != nil {
		s.Of = w.of(c.Campaign, c.Advertiser)
	}
	if e.PinGone {
		s.Because = append(s.Because, "The reader had bookmarked “"+w.creative(e.Pin).Text+"” here; it has been taken off this site, and the bookmark is dropped.")
	} else if e.Pin != "" && e.Outcome != "honored" {
		s.Because = append(s.Because, "The reader has bookmarked “"+w.creative(e.Pin).Text+"” here. It cannot be shown now, and the bookmark is kept.")
	}
	for i := range e.Contenders {
		c := &e.Contenders[i]
		if c.Score > 0 {
			x := w.contender(c, candidates[c.Creative])
			x.Winner = c.Creative == e.Creative
			s.Contenders = append(s.Contenders, x)
			continue
		}
		s.other(sayingOf(c.Fate), w.creative(c.Creative))
	}
	return s
}

// other adds a candidate to those of its fate.
func (s *whySlot) other(say saying, creative link) {
	for i := range s.Others {
		if s.Others[i].Fate == say.text {
			s.Others[i].Creatives = append(s.Others[i].Creatives, creative)
			return
		}
	}
	s.Others = append(s.Others, whyOthers{say.text, say.badge, []link{creative}})
}

// winner says why an auction was won, and what is paid.
func (w *words) winner(s *whySlot, e *serve.ExplainedSlot, candidates map[string]*serve.ExplainedCandidate) {
	refused := 0
	for i := range e.Contenders {
		c := &e.Contenders[i]
		if c.Reservation == "refused" {
			refused++
		}
		if c.Creative != e.Creative {
			continue
		}
		s.Verdict = "It pays " + w.cpm(c.Price) + " for a thousand impressions."
		if refused > 0 {
			s.Because = append(s.Because, fmt.Sprintf("%d with a better score could not pay.", refused))
		} else {
			s.Because = append(s.Because, "It has the best score of all that could have this slot: of what readers did with it, and of its bid.")
		}
		x := candidates[c.Creative]
		s.Because = append(s.Because, w.price(c, x))
		if x != nil {
			s.Because = append(s.Because, "It would have paid up to "+w.cpm(x.Bid)+".")
			s.Scale = w.scale(c, x)
		}
	}
}

// price says what has set the price of a winner.
func (w *words) price(c *serve.ExplainedContender, x *serve.ExplainedCandidate) string {
	next := "The next one, “" + w.creative(c.RunnerUp).Text + "”, "
	switch {
	case c.RunnerUp == "" && c.Floor > 0:
		return "No other advertiser was left to compete with, so that it pays the floor."
	case c.RunnerUp == "":
		return "No other advertiser was left to compete with, and the slot has no floor."
	case c.Price <= c.Floor:
		return next + "would have been beaten for less than the floor, so that it pays the floor."
	case x != nil && c.Price >= x.Bid:
		return next + "is at least as good by what is known: chance was with this one, and it pays its whole bid."
	}
	return next + "sets the price: as much as is needed to be as good as that."
}

// scale draws floor, price and bid on a line that begins at nothing.
func (w *words) scale(c *serve.ExplainedContender, x *serve.ExplainedCandidate) *priceScale {
	end := float64(max(x.Bid, c.Price, c.Floor, 1)) * 1.04
	place := func(v int64) string { return number(float64(v) / end * 100) }
	return &priceScale{
		About: fmt.Sprintf("Floor %s, price %s, bid %s", w.cpm(c.Floor), w.cpm(c.Price), w.cpm(x.Bid)),
		Floor: place(int64(c.Floor)), Price: place(int64(c.Price)), Bid: place(int64(x.Bid)),
		Labels: []figure{{Label: "Floor", Text: w.cpm(c.Floor)}, {Label: "Price", Text: w.cpm(c.Price)}, {Label: "Bid", Text: w.cpm(x.Bid)}},
	}
}

func (w *words) contender(c *serve.ExplainedContender, x *serve.ExplainedCandidate) whyContender {
	say := sayingOf(c.Fate)
	if c.Fate == "filled" {
		say.text = "has the slot"
	}
	out := whyContender{About: w.creative(c.Creative), Fate: say.text, Badge: say.badge}
	bid, floor := "–", "none"
	if x != nil {
		out.Of, bid = w.of(x.Campaign, x.Advertiser), w.cpm(x.Bid)
	}
	if c.Floor > 0 {
		floor = w.cpm(c.Floor)
	}
	out.Texts = []string{decimal(c.Score), bid, floor, w.cpm(c.Price)}
	return out
}
