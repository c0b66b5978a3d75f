package auctiontest

import (
	"slices"
	"strings"
	"time"

	"deckle/internal/auction"
)

// A fault is what a bidder does, what the page gets, and what is counted.
type fault struct {
	name    string
	serve   Server // nil: nobody listens
	winner  string // the seat whose bid the page gets
	status  auction.Status
	nonBids map[auction.NonBidReason]int
	exact   bool // a clock of the real world is not exact enough for it
}

// faults are bidders that do something else than answer, and some that only seem
// to.
func (d Dialect) faults() []fault {
	odd := oddity{d.Answer("", Offer("odd", "o", "2"))} // beats quick's bid
	return slices.Concat(odd.goodEnough(), odd.silent(), odd.slow(), odd.broken(), odd.refusing(), odd.unreadable())
}

// An oddity makes faults of a bidder whose answer, were it a proper one, would be
// good.
type oddity struct{ good string }

const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// replies is a bidder that answers every request with text.
func (oddity) replies(name, text string, status auction.Status) fault {
	return fault{name: name, serve: Replies(text), winner: "quick", status: status}
}

func (oddity) serves(name string, serve Server, status auction.Status) fault {
	return fault{name: name, serve: serve, winner: "quick", status: status}
}

// wins is a bidder whose bid the page gets.
func (oddity) wins(name string, serve Server) fault {
	return fault{name: name, serve: serve, winner: "odd", status: auction.StatusBid}
}

// once answers one request with text and hangs up; then does not hang up.
func once(text string) Server { return func(c *Conn) { c.ReadRequest(); c.Send(text) } }
func then(text string) Server { return func(c *Conn) { c.ReadRequest(); c.Send(text); c.Hang() } }

func inGzip(body string) string { return Response("200 OK", "Content-Encoding: gzip\r\n", body) }

// goodEnough are those of which only the manner is odd: their bid wins.
func (odd oddity) goodEnough() []fault {
	return []fault{
		odd.wins("answers", Replies(OK(odd.good))),
		odd.wins("answers in gzip", Replies(inGzip(Gzipped(odd.good)))),
		odd.wins("answers in two gzip members", Replies(inGzip(Gzipped(odd.good[:9])+Gzipped(odd.good[9:])))),
		odd.wins("answers in chunks", Replies(chunks+Chunked(odd.good)+"0\r\n\r\n")),
		odd.wins("answers a byte a chunk", Replies(chunks+chunkEach(odd.good)+"0\r\n\r\n")),
		odd.wins("answers and hangs on", then(OK(odd.good))),
		odd.wins("answers twice", once(OK(odd.good)+OK(odd.good))),
		odd.wins("hints first", Replies("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"+OK(odd.good))),
	}
}

// silent are bidders that have no bid.
func (odd oddity) silent() []fault {
	return []fault{
		odd.replies("has no bid", "HTTP/1.1 204 No Content\r\n\r\n", auction.StatusNoBid),
		odd.serves("has no bid and a body", once("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\nsurprise!"), auction.StatusNoBid),
	}
}

// slow are bidders that take more time than there is.
func (odd oddity) slow() []fault {
	return []fault{
		odd.serves("hangs", Hang, auction.StatusTimeout),
		odd.serves("hangs after the request", then(""), auction.StatusTimeout),
		{name: "answers a millisecond late", serve: Late(deadline+time.Millisecond, OK(odd.good)), winner: "quick", status: auction.StatusTimeout, exact: true},
		odd.serves("stalls within its header", then("HTTP/1.1 200 OK\r\nContent-Le"), auction.StatusTimeout),
		odd.serves("stalls within its answer", then("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+odd.good[:len(odd.good)/2]), auction.StatusTimeout),
		odd.serves("never says that its answer has ended", then("HTTP/1.1 200 OK\r\n\r\n"+odd.good), auction.StatusTimeout),
		odd.serves("never sends its last chunk", then(chunks+Chunked(odd.good)), auction.StatusTimeout),
		odd.serves("drips a byte a second", Endless("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", " ", time.Second), auction.StatusTimeout),
		odd.serves("drips a byte a millisecond", Endless("HTTP/1.1 200 OK\r\n\r\n", " ", time.Millisecond), auction.StatusTimeout),
		odd.serves("never ends its header", Endless("HTTP/1.1 200 OK\r\n", "X-A: b\r\n", 10*time.Millisecond), auction.StatusTimeout),
	}
}

// broken are connections that fail, and answers that are no HTTP, or too much of it.
func (odd oddity) broken() []fault {
	return []fault{
		{name: "is not there", winner: "quick", status: auction.StatusTransport},
		odd.serves("hangs up", once(""), auction.StatusTransport),
		odd.serves("hangs up before the request", func(*Conn) {}, auction.StatusTransport),
		odd.serves("hangs up within its answer", once("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"+odd.good), auction.StatusTransport),
		odd.serves("hangs up within a chunk", once(chunks+"ffff\r\n"+odd.good), auction.StatusTransport),
		odd.serves("speaks another protocol", once("220 mail ESMTP\r\n"), auction.StatusTransport),
		odd.serves("answers in zeros", once(strings.Repeat("\x00", 4096)), auction.StatusTransport),
		odd.serves("sends a header without end", Endless("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0), auction.StatusTransport),
		odd.serves("sends one field without end", Endless("HTTP/1.1 200 OK\r\nX-A: ", strings.Repeat("b", 1000), 0), auction.StatusTransport),
		odd.serves("hints for ever", Endless("", "HTTP/1.1 103 Early Hints\r\n\r\n", 0), auction.StatusTransport),
		odd.serves("names two lengths", once("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"+odd.good), auction.StatusTransport),
		odd.serves("names a negative length", once("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n"+odd.good), auction.StatusTransport),
		odd.serves("names a negative chunk", once(chunks+"-5\r\n"+odd.good), auction.StatusTransport),
		odd.serves("extends a chunk without end", Endless(chunks+"5;", strings.Repeat("x", 1000), 0), auction.StatusTransport),
		odd.serves("sends trailers without end", Endless(chunks+Chunked(odd.good)+"0\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0), auction.StatusTransport),
	}
}

// refusing are answers with another status than 200 and 204.
func (odd oddity) refusing() []fault {
	return []fault{
		odd.replies("answers 500", Response("500 Internal Server Error", "", "oops"), auction.StatusHTTPStatus),
		odd.serves("answers 500 and hangs", then("HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\n"), auction.StatusHTTPStatus),
		odd.serves("answers 500 without end", Endless("HTTP/1.1 500 Oops\r\n\r\n", strings.Repeat("x", 1000), 0), auction.StatusHTTPStatus),
		odd.replies("answers 400 in plain text", Response("400 Bad Request", "", "Invalid request: Stored Imp not found.\n"), auction.StatusHTTPStatus),
		odd.replies("asks for patience", Response("429 Too Many Requests", "Retry-After: 3600\r\n", ""), auction.StatusHTTPStatus),
		odd.replies("redirects", Response("307 Temporary Redirect", "Location: http://quick/\r\n", ""), auction.StatusHTTPStatus),
		odd.replies("answers a part", Response("206 Partial Content", "Content-Range: bytes 0-9/99\r\n", odd.good), auction.StatusHTTPStatus),
		odd.serves("switches protocols", then("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), auction.StatusHTTPStatus),
	}
}

// unreadable are answers of which nothing can be read.
func (odd oddity) unreadable() []fault {
	return []fault{
		odd.replies("answers in HTML", OK("<!doctype html><title>Sign in</title>"), auction.StatusParse),
		odd.replies("answers half a JSON", OK(odd.good[:len(odd.good)/2]), auction.StatusParse),
		odd.replies("answers more than one JSON", OK(odd.good+odd.good), auction.StatusParse),
		odd.replies("answers a list", OK("["+odd.good+"]"), auction.StatusParse),
		odd.replies("answers null", OK("null"), auction.StatusParse),
		odd.replies("answers nothing", OK(""), auction.StatusParse),
		odd.replies("answers with a byte order mark", OK("\ufeff"+odd.good), auction.StatusParse),
		odd.serves("names too short a length", once("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"+odd.good), auction.StatusParse),
		odd.serves("answers 100 MB", Endless("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", strings.Repeat(" ", 1<<20), 0), auction.StatusParse),
		odd.serves("answers without end", Endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 1<<16), 0), auction.StatusParse),
		odd.replies("answers a gzip bomb", inGzip(Bomb()), auction.StatusParse),
		odd.replies("answers half a gzip", inGzip(Gzipped(odd.good)[:30]), auction.StatusParse),
		odd.replies("says gzip and is not", inGzip(odd.good), auction.StatusParse),
		odd.replies("says gzip twice", Response("200 OK", "Content-Encoding: gzip, gzip\r\n", Gzipped(Gzipped(odd.good))), auction.StatusParse),
		odd.replies("answers in a coding that we did not ask for", Response("200 OK", "Content-Encoding: br\r\n", odd.good), auction.StatusParse),
		odd.replies("nests 33 deep", OK(`{"a":`+strings.Repeat("[", 32)+strings.Repeat("]", 32)+`}`), auction.StatusParse),
		odd.replies("nests without end", OK(strings.Repeat(`{"a":`, 400_000)), auction.StatusParse),
	}
}

// chunkEach is s in chunks of one byte.
func chunkEach(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("1\r\n" + s[i:i+1] + "\r\n")
	}
	return b.String()
}
