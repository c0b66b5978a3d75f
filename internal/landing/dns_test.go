package landing_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// resolverOf finds one address for every name, by DNS over a pipe.
func resolverOf(t *testing.T, addr netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer func() { _ = far.Close() }()
			if err := answer(far, addr); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("dns: %v", err)
			}
		}()
		return near, nil
	}}
}

// answer answers one question in the framing of DNS over TCP (RFC 1035 section
// 4.2.2), which the resolver uses on what is no packet connection.
func answer(c net.Conn, addr netip.Addr) error {
	question := make([]byte, 2+512)
	n, err := c.Read(question)
	if err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(question[2:n]); err != nil {
		return err
	}
	asked := m.Questions[0]
	header := dnsmessage.ResourceHeader{Name: asked.Name, Class: asked.Class, TTL: 1}
	m.Response, m.Additionals = true, nil
	switch {
	case asked.Type == dnsmessage.TypeA && addr.Is4():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}}}
	case asked.Type == dnsmessage.TypeAAAA && addr.Is6():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}}
	}
	out, err := m.AppendPack([]byte{0, 0})
	if err != nil {
		return err
	}
	out[0], out[1] = byte((len(out)-2)>>8), byte(len(out)-2)
	_, err = c.Write(out)
	return err
}
