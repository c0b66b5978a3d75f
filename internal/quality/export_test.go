package quality

// EqualBid is the price before it is rounded.
var EqualBid = equalBid
