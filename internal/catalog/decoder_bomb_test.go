package catalog_test

import (
	"bytes"
	"compress/lzw"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deckle/internal/catalog"
)

// segment is a marker of a JPEG with what it is the head of.
func segment(marker byte, payload ...byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(payload)+2)), payload...)
}

// huffmanOfOne is a table of the one symbol, whose code is the bit 0.
func huffmanOfOne(class, symbol byte) []byte {
	return segment(0xc4, slices.Concat([]byte{class, 1}, make([]byte, 15), []byte{symbol})...)
}

// progressive is a grey JPEG of so many scans: the first makes it grey, and each of the
// others says within some bytes that nothing changes in 32,767 blocks of 8×8 pixels.
func progressive(w, h, scans int) []byte {
	var b bytes.Buffer
	b.Write([]byte{0xff, 0xd8})
	b.Write(segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...))
	b.Write(segment(0xc2, 8, byte(h>>8), byte(h), byte(w>>8), byte(w), 1, 1, 0x11, 0))
	b.Write(huffmanOfOne(0x00, 0))
	b.Write(huffmanOfOne(0x10, 0xe0)) // the end of up to 32,767 blocks, whose number follows in 14 bits
	blocks := (w + 7) / 8 * ((h + 7) / 8)
	b.Write(segment(0xda, 1, 1, 0, 0, 0, 0))
	b.Write(make([]byte, blocks/8+1))
	for range scans - 1 {
		b.Write(segment(0xda, 1, 1, 0, 1, 63, 0))
		b.Write([]byte{0x7f, 0xff, 0x00}) // the code, fourteen ones, one more for a whole byte
	}
	b.Write([]byte{0xff, 0xd9})
	return b.Bytes()
}

// chunk is one of a PNG.
func chunk(kind string, data []byte) []byte {
	whole := append([]byte(kind), data...)
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), whole...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(whole))
}

// greyPNG is a grey PNG of some deflated bytes.
func greyPNG(t *testing.T, w, h uint32, interlaced byte, pixels []byte) []byte {
	t.Helper()
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	if _, err := z.Write(pixels); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	return slices.Concat([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(header, 8, 0, 0, 0, interlaced)),
		chunk("IDAT", deflated.Bytes()), chunk("IEND", nil))
}

// oneFrame is a GIF of one pixel and as many bytes of pixels as are given.
func oneFrame(t *testing.T, pixels int) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := lzw.NewWriter(&packed, lzw.LSB, 2)
	if _, err := z.Write(make([]byte, pixels)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	out := slices.Concat([]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00"), make([]byte, 6), []byte(",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02"))
	for block := range slices.Chunk(packed.Bytes(), 255) {
		out = append(append(out, byte(len(block))), block...)
	}
	return append(out, 0, ';')
}

// withHeader is a WebP that says it has a size, and has something else in it.
func withHeader(t *testing.T, w, h byte, lossless []byte) []byte {
	t.Helper()
	out := slices.Concat([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), []byte{w - 1, 0, 0, h - 1, 0, 0},
		[]byte("VP8L"), binary.LittleEndian.AppendUint32(nil, uint32(len(lossless))), lossless, make([]byte, len(lossless)%2))
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}

// A small file makes no decoder work for more than its picture.
func TestDecoderBombs(t *testing.T) {
	const huge = 64 << 20
	still := webp(t)[20:33]
	large := slices.Clone(still)
	copy(large[1:], "\xff\xff\xff\x0f") // 16,384×16,384
	whole := progressive(64, 64, 64)
	thumbnail := segment(0xfe, bytes.Repeat([]byte{0xff, 0xda}, 100)...)
	for _, test := range []struct {
		name string
		data []byte
		want string // "" for what is taken
	}{
		{"some scans", whole, ""},
		{"many scans", progressive(64, 64, 65), "has 65 scans of 64×64 pixels"},
		{"very many scans", progressive(64, 64, 100_000), "has 100000 scans"},
		{"scans behind fill bytes", bytes.ReplaceAll(progressive(64, 64, 65), []byte{0xff, 0xda}, []byte{0xff, 0xff, 0xff, 0xda}), "has 65 scans"},
		{"some large scans", progressive(1_024, 1_024, 64), ""},
		{"many large scans", progressive(4_096, 4_096, 33), "has 33 scans of 4096×4096 pixels"},
		{"scans in a comment", slices.Concat(whole[:2], thumbnail, whole[2:]), ""},
		{"scans behind the end", slices.Concat(whole, progressive(64, 64, 65)), ""},
		{"a PNG", greyPNG(t, 1, 1, 0, make([]byte, 2)), ""},
		{"a PNG of more than its pixels", greyPNG(t, 1, 1, 0, make([]byte, huge)), "is damaged"},
		{"an interlaced PNG", greyPNG(t, 1, 1, 1, make([]byte, 2)), ""},
		{"an interlaced PNG of more than its pixels", greyPNG(t, 1, 1, 1, make([]byte, huge)), "is damaged"},
		{"an interlaced PNG of nothing", greyPNG(t, 8_192, 8_192, 1, nil), "has 8192×8192 pixels"},
		{"a GIF", oneFrame(t, 1), ""},
		{"a GIF of more than its pixels", oneFrame(t, huge), "is damaged"},
		{"a WebP", withHeader(t, 1, 1, still), ""},
		{"a WebP of another size within", withHeader(t, 1, 1, large), "is damaged"},
	} {
		var err error
		grown := allocated(func() { _, err = catalog.Examine(test.data) })
		if test.want == "" && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.want != "" && (!errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
		if test.want != "" && grown > 1<<20 {
			t.Errorf("%s: %d bytes were allocated for what is refused", test.name, grown)
		}
	}
	if _, _, err := image.Decode(bytes.NewReader(progressive(64, 64, 65))); err != nil {
		t.Errorf("the bomb is not one: %v", err)
	}
}

// allocated is how many bytes f allocates, whatever is free again.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
