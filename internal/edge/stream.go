package edge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"deckle/internal/auction"
	"deckle/internal/htmlstream"
)

// where says at which point of a page its bids went in. It is a metric's label.
type where string

const (
	nowhere where = "none"
	inHead  where = "head"
	inBody  where = "body" // at the first safe point after the auction was done
	atEnd   where = "end"  // before </body> or at the end of the document
)

// A page is an answer on its way, with its holes. It is owned by the request's
// goroutine.
type page struct {
	visit    *visit
	doc      document
	out      encoder
	reader   *http.ResponseController
	trailer  http.Header
	selected func(*auction.Result) // told once the bids have been written

	html     *htmlstream.Writer       // set by stream
	headEnds func(*htmlstream.Writer) // told when head has ended; nil: nobody wants to know
	giveUp   func()                   // ends the auction
	shut     bool                     // a policy in a meta forbids hole 1, and so everything else

	where  where           // the bids went in; nowhere: not yet
	result *auction.Result // set with where
	told   bool            // selected has been called
	ended  bool            // the last hole has been passed
	held   time.Duration   // how long bytes have waited for bids
}

func newPage(w http.ResponseWriter, v *visit, doc document) *page {
	return &page{
		visit: v, doc: doc, where: nowhere,
		out:     doc.coding.encode(w),
		reader:  http.NewResponseController(w),
		trailer: w.Header(),
	}
}

// stream copies body to the reader and fills the holes on the way. It returns an
// error when the reader did not get a whole page.
func (p *page) stream(body io.ReadCloser) error {
	ahead := startAhead(p.doc.coding.decode(body))
	defer ahead.stop()
	defer body.Close() // ends a Read that is under way

	html := htmlstream.NewWriter(p.out, p.options(), p.fill)
	p.html = html
	bids := p.bidsDone()
	var ended error
	for ended == nil {
		var err error
		select {
		case <-ahead.arrived:
			var chunk []byte
			chunk, ended = ahead.take()
			_, err = html.Write(chunk)
		case <-bids: // also while the origin stalls
			bids = nil
			err = html.Late()
		}
		if err := errors.Join(err, p.pass(ended != nil || ahead.idle())); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	if !errors.Is(ended, io.EOF) {
		_ = errors.Join(html.Stop(), p.flush()) // what has arrived is the reader's
		return fmt.Errorf("read page: %w", ended)
	}
	if err := errors.Join(html.Close(), p.pass(true), p.out.Close()); err != nil {
		return fmt.Errorf("end page: %w", err)
	}
	p.serverTiming()
	return nil
}

// options are where something may go in, and what is read on the way: without an
// auction only slots go in, and without anybody who wants to know nothing is read.
func (p *page) options() htmlstream.Options {
	o := htmlstream.Options{CharsetKnown: p.doc.charsetKnown, Points: htmlstream.HeadStart, Policies: true}
	if p.headEnds != nil {
		o.Points |= htmlstream.HeadEnd
		o.Metas = headMetas()
	}
	if p.visit.auction != nil {
		o.Points |= htmlstream.HeadEnd | htmlstream.Body | htmlstream.BodyEnd | htmlstream.End
	}
	return o
}

// bidsDone is closed when the auction is done; nil without one.
func (p *page) bidsDone() <-chan struct{} {
	if p.visit.auction == nil {
		return nil
	}
	return p.visit.auction.Done()
}

// pass sends on what has been written: when the origin, too, has written no more
// so far, and directly after the bids. Then their winners are selected.
func (p *page) pass(idle bool) error {
	tell := p.where != nowhere && !p.told
	if !idle && !tell {
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	if tell {
		p.told = true
		p.selected(p.result)
	}
	return nil
}

func (p *page) flush() error {
	return errors.Join(p.out.Flush(), p.reader.Flush())
}

// fill gives what goes in at a point of the page.
func (p *page) fill(at htmlstream.Point) []byte {
	switch at {
	case htmlstream.HeadStart:
		return p.slots()
	case htmlstream.HeadEnd:
		if p.headEnds != nil {
			p.headEnds(p.html)
		}
		return p.bids(inHead, p.visit.holdUntil())
	case htmlstream.Body:
		return p.bids(inBody, time.Time{})
	case htmlstream.BodyEnd, htmlstream.End:
		return p.last()
	}
	return nil
}

// slots gives hole 1, unless a policy in a meta before it forbids that. Then bids have
// nobody to go to.
func (p *page) slots() []byte {
	nonce, ok := p.doc.scripts.admitMeta(p.metaPolicies(), slotsRunner(), true)
	if !ok {
		p.shut = true
		p.giveUp()
		p.visit.site.edge.metrics.untouched.WithLabelValues(p.visit.site.ID, string(untouchedCSP)).Inc()
		return nil
	}
	return p.visit.slotsHole(time.Now(), nonce)
}

// metaPolicies are the policies that the document has set for itself so far.
func (p *page) metaPolicies() []string {
	raw := p.html.Policies()
	texts := make([]string, len(raw))
	for i, text := range raw {
		texts[i] = metaText(text, cmp.Or(p.html.Charset(), p.doc.charset))
	}
	return texts
}

// last gives what goes in at the end of the page: the bids that have not gone in
// before, with what had arrived by A_deadline, and the markup.
func (p *page) last() []byte {
	if p.ended {
		return nil
	}
	p.ended = true
	return append(p.bids(atEnd, p.visit.deadline()), p.markupBlock()...)
}

// bids waits for the auction until a moment and gives what goes in at this
// point: the winners' bids, once; nil if they are not known by then.
func (p *page) bids(here where, until time.Time) []byte {
	a := p.visit.auction
	if a == nil || p.shut || p.where != nowhere || !p.hold(a, until) || a.Result().Canceled {
		return nil
	}
	p.where, p.result = here, a.Result()
	return p.bidsHole()
}

// hold waits until the auction is done, and no longer than until. What stands
// before the hole is with the reader meanwhile.
func (p *page) hold(a *auction.Auction, until time.Time) bool {
	select {
	case <-a.Done():
		return true
	default:
	}
	if p.flush() != nil {
		return false
	}
	start := time.Now()
	defer func() { p.held += time.Since(start) }()
	if !until.Before(p.visit.deadline()) {
		<-a.Done() // at A_deadline at the latest
		return true
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-a.Done():
		return true
	case <-timer.C:
		return false
	}
}

// serverTiming tells, in the trailer, what was not known before the first byte.
func (p *page) serverTiming() {
	if !p.visit.site.ServerTiming || p.visit.shared {
		return
	}
	line := "hold;dur=" + millis(p.held)
	if p.result != nil {
		line += ", auction;dur=" + millis(p.result.Elapsed)
		for _, b := range p.result.Providers {
			line += fmt.Sprintf(", %s;dur=%s;desc=%q", b.Name, millis(b.Elapsed), b.Status)
		}
	}
	p.trailer.Set(http.TrailerPrefix+"Server-Timing", line)
}
