package auctiontest

import (
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
	good := d.Answer("", Offer("odd", "o", "2")) // beats quick's bid
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	gzip := func(body string) string { return Response("200 OK", "Content-Encoding: gzip\r\n", body) }
	replies := func(name, text, winner string, status auction.Status) fault {
		return fault{name: name, serve: Replies(text), winner: winner, status: status}
	}
	serves := func(name string, serve Server, status auction.Status) fault {
		return fault{name: name, serve: serve, winner: "quick", status: status}
	}
	once := func(text string) Server { return func(c *Conn) { c.ReadRequest(); c.Send(text) } }
	then := func(text string) Server { return func(c *Conn) { c.ReadRequest(); c.Send(text); c.Hang() } }
	return []fault{
		// Odd, and good enough.
		replies("answers", OK(good), "odd", auction.StatusBid),
		replies("answers in gzip", gzip(Gzipped(good)), "odd", auction.StatusBid),
		replies("answers in two gzip members", gzip(Gzipped(good[:9])+Gzipped(good[9:])), "odd", auction.StatusBid),
		replies("answers in chunks", chunks+Chunked(good)+"0\r\n\r\n", "odd", auction.StatusBid),
		replies("answers a byte a chunk", chunks+chunkEach(good)+"0\r\n\r\n", "odd", auction.StatusBid),
		{name: "answers and hangs on", serve: then(OK(good)), winner: "odd", status: auction.StatusBid},
		{name: "answers twice", serve: once(OK(good) + OK(good)), winner: "odd", status: auction.StatusBid},
		replies("hints first", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"+OK(good), "odd", auction.StatusBid),

		// No bid.
		replies("has no bid", "HTTP/1.1 204 No Content\r\n\r\n", "quick", auction.StatusNoBid),
		serves("has no bid and a body", once("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\nsurprise!"), auction.StatusNoBid),

		// Time.
		serves("hangs", Hang, auction.StatusTimeout),
		serves("hangs after the request", then(""), auction.StatusTimeout),
		{name: "answers a millisecond late", serve: Late(deadline+time.Millisecond, OK(good)), winner: "quick", status: auction.StatusTimeout, exact: true},
		serves("stalls within its header", then("HTTP/1.1 200 OK\r\nContent-Le"), auction.StatusTimeout),
		serves("stalls within its answer", then("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+good[:len(good)/2]), auction.StatusTimeout),
		serves("never says that its answer has ended", then("HTTP/1.1 200 OK\r\n\r\n"+good), auction.StatusTimeout),
		serves("never sends its last chunk", then(chunks+Chunked(good)), auction.StatusTimeout),
		serves("drips a byte a second", Endless("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", " ", time.Second), auction.StatusTimeout),
		serves("drips a byte a millisecond", Endless("HTTP/1.1 200 OK\r\n\r\n", " ", time.Millisecond), auction.StatusTimeout),
		serves("never ends its header", Endless("HTTP/1.1 200 OK\r\n", "X-A: b\r\n", 10*time.Millisecond), auction.StatusTimeout),

		// The connection, and HTTP.
		{name: "is not there", winner: "quick", status: auction.StatusTransport},
		serves("hangs up", once(""), auction.StatusTransport),
		serves("hangs up before the request", func(*Conn) {}, auction.StatusTransport),
		serves("hangs up within its answer", once("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"+good), auction.StatusTransport),
		serves("hangs up within a chunk", once(chunks+"ffff\r\n"+good), auction.StatusTransport),
		serves("speaks another protocol", once("220 mail ESMTP\r\n"), auction.StatusTransport),
		serves("answers in zeros", once(strings.Repeat("\x00", 4096)), auction.StatusTransport),
		serves("sends a header without end", Endless("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0), auction.StatusTransport),
		serves("sends one field without end", Endless("HTTP/1.1 200 OK\r\nX-A: ", strings.Repeat("b", 1000), 0), auction.StatusTransport),
		serves("hints for ever", Endless("", "HTTP/1.1 103 Early Hints\r\n\r\n", 0), auction.StatusTransport),
		serves("names two lengths", once("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"+good), auction.StatusTransport),
		serves("names a negative length", once("HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n"+good), auction.StatusTransport),
		serves("names a negative chunk", once(chunks+"-5\r\n"+good), auction.StatusTransport),
		serves("extends a chunk without end", Endless(chunks+"5;", strings.Repeat("x", 1000), 0), auction.StatusTransport),
		serves("sends trailers without end", Endless(chunks+Chunked(good)+"0\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0), auction.StatusTransport),

		// Another status.
		replies("answers 500", Response("500 Internal Server Error", "", "oops"), "quick", auction.StatusHTTPStatus),
		serves("answers 500 and hangs", then("HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\n"), auction.StatusHTTPStatus),
		serves("answers 500 without end", Endless("HTTP/1.1 500 Oops\r\n\r\n", strings.Repeat("x", 1000), 0), auction.StatusHTTPStatus),
		replies("answers 400 in plain text", Response("400 Bad Request", "", "Invalid request: Stored Imp not found.\n"), "quick", auction.StatusHTTPStatus),
		replies("asks for patience", Response("429 Too Many Requests", "Retry-After: 3600\r\n", ""), "quick", auction.StatusHTTPStatus),
		replies("redirects", Response("307 Temporary Redirect", "Location: http://quick/\r\n", ""), "quick", auction.StatusHTTPStatus),
		replies("answers a part", Response("206 Partial Content", "Content-Range: bytes 0-9/99\r\n", good), "quick", auction.StatusHTTPStatus),
		serves("switches protocols", then("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), auction.StatusHTTPStatus),

		// The body.
		replies("answers in HTML", OK("<!doctype html><title>Sign in</title>"), "quick", auction.StatusParse),
		replies("answers half a JSON", OK(good[:len(good)/2]), "quick", auction.StatusParse),
		replies("answers more than one JSON", OK(good+good), "quick", auction.StatusParse),
		replies("answers a list", OK("["+good+"]"), "quick", auction.StatusParse),
		replies("answers null", OK("null"), "quick", auction.StatusParse),
		replies("answers nothing", OK(""), "quick", auction.StatusParse),
		replies("answers with a byte order mark", OK("\ufeff"+good), "quick", auction.StatusParse),
		serves("names too short a length", once("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"+good), auction.StatusParse),
		serves("answers 100 MB", Endless("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", strings.Repeat(" ", 1<<20), 0), auction.StatusParse),
		serves("answers without end", Endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 1<<16), 0), auction.StatusParse),
		replies("answers a gzip bomb", gzip(Bomb()), "quick", auction.StatusParse),
		replies("answers half a gzip", gzip(Gzipped(good)[:30]), "quick", auction.StatusParse),
		replies("says gzip and is not", gzip(good), "quick", auction.StatusParse),
		replies("says gzip twice", Response("200 OK", "Content-Encoding: gzip, gzip\r\n", Gzipped(Gzipped(good))), "quick", auction.StatusParse),
		replies("answers in a coding that we did not ask for", Response("200 OK", "Content-Encoding: br\r\n", good), "quick", auction.StatusParse),
		replies("nests 33 deep", OK(`{"a":`+strings.Repeat("[", 32)+strings.Repeat("]", 32)+`}`), "quick", auction.StatusParse),
		replies("nests without end", OK(strings.Repeat(`{"a":`, 400_000)), "quick", auction.StatusParse),
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
