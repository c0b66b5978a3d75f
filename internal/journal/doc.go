// Package journal is what happened: an append-only record of events that count,
// durable before anybody is told so, and read in one order by everybody.
//
// # Order and durability
//
// [Journal.Append] returns when the store has acknowledged the envelope that its
// events are in. Events of one call are in one envelope, next to each other, in the
// order of the call. One node has one envelope under way at a time, so that events
// of a caller who waits for one call before the next are in the order of the calls;
// calls that overlap are in any order, and so are different nodes.
//
// Envelopes commit in groups: what is appended while one is on its way joins the
// next. When the one before has been acknowledged, an envelope leaves as soon as as
// many calls have joined it as there were in the one before, at the latest
// [Config.Fill] after its first. A lone caller so waits for the disk only, and a
// crowd for the crowd.
//
// An envelope is written with the hash of its bytes as message id, so that a retry
// after a lost acknowledgement is no second message; the store remembers ids for two
// minutes, and no retry is later than [Config.Wait]. An Append that failed may have
// happened all the same. Tell the event again: readers count it once, by its [EventID].
//
// # Time
//
// An event is at the time of the node that took it, and at most [MaxAhead] ahead: of
// that node's clock, or Append refuses it, and of the store's time of its envelope, or
// [Read] puts that time in its place. So no clock that is wrong, and no program of
// before, can move a reader's time years ahead, from where nothing moves it back.
//
// What Read makes of an event depends on its message alone, and is the same on every
// node and at every start. A copy of a store by `deckle store import` has the times of
// the copying, which are later: an event that was out of bounds may be within them
// there, or be at another time. Tables that were folded before the copy, from a journal
// with such an event, are to be folded anew (`deckle replay`).
//
// # Encoding
//
// A message of the log is one envelope. Version 1, byte for byte:
//
//	0xFE        mark: not a byte of any UTF-8 text
//	0x01        version of the encoding
//	event …     1 to 1,024, until the checksum
//	4 bytes     CRC-32C (Castagnoli) of everything before it, big-endian
//
// An event is its kind, what is set, when it happened, and the fields that are set,
// in the order of their bits:
//
//	byte        kind
//	uvarint     fields: one bit for each that is set, as below; what is 0, empty or
//	            false is not set
//	varint      At in milliseconds, as the difference to the event before; that of
//	            the first to 1970-01-01T00:00:00Z. Every sum is within 0 (1970) and
//	            253402300799999 (the end of 9999)
//	bit 0       Site         string
//	bit 1       Slot         string
//	bit 2       Advertiser   string
//	bit 3       Campaign     string
//	bit 4       Creative     string
//	bit 5       Version      uvarint, 32 bits
//	bit 6       URL          string, as below
//	bit 7       RequestID    8 bytes, big-endian
//	bit 8       Category     string
//	bit 9       Price        uvarint, micros, 63 bits
//	bit 10      Leases       uvarint how many, 1 to 16, then as many strings
//	bit 11      Dogeared     nothing follows
//	bit 12      Suspect      byte
//	bit 13      Page         uvarint, 16 bits
//	bit 14      Verified     nothing follows
//	bit 15      Lease        string
//	bit 16      Line         string
//	bit 17      Amount       uvarint, micros, 63 bits
//
// A string is written out once in an envelope and then referred to:
//
//	uvarint 0, uvarint n, n bytes    the string, n from 1 to 4,096; it gets the next
//	                                 number, from 1
//	uvarint k, from 1                the string of that number
//
// A URL is written out by what it does not share with the one that was written out
// before it:
//
//	uvarint 0, uvarint m, uvarint n, n bytes
//	                                 the first m bytes of the last URL that was
//	                                 written out (of none: m is 0) and these, m as
//	                                 great as possible, 1 to 4,096 together
//
// uvarint is base 128, least significant group first, as in Protocol Buffers, in its
// shortest form; varint is the same after zigzag (0, -1, 1, -2 → 0, 1, 2, 3).
//
// The encoding is canonical: one list of events has one envelope, and what decodes
// encodes to the same bytes. So what is longer than it need be is corrupt: a varint
// with a zero group at its end, a field that is set and 0 or empty, a string that is
// written out again.
//
// # Versions
//
// Version, kinds, bits and their meaning never change. A program that meets a higher
// version, an unknown kind or an unknown bit stops with an error that names what it met
// and what it knows, and wraps [ErrNewer]: an event that it cannot read may be one that
// counts. So every node is brought to a program that reads a new version, kind or
// field before the first one writes it.
package journal
