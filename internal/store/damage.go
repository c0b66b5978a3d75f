package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"
)

// When the engine finds a bad record in a block that it has to read again, after
// anything but an orderly end, it cuts the block off there, and with it whatever
// was acknowledged later. So what it would read is read before it, by the format
// of its blocks:
//
//	uint32 length of the record, the highest bit: it has headers
//	uint64 sequence; the two highest bits: erased, or a note of a removal
//	int64  Unix nanoseconds
//	uint16 length of the subject
//	       subject, uint32 length of the headers if any, headers, message
//	[8]    HighwayHash of sequence, time, subject, headers, and message
//
// all little-endian; the hash is keyed by stream and block. A bad record at the
// very end is a write that a crash has cut short, and was never acknowledged: the
// engine may have it.
const (
	recordHead  = 4 + 8 + 8 + 2
	recordHash  = 8
	headersFlag = 1 << 31
	recordMax   = 32 << 20
	seqFlags    = 3 << 62
)

// examineBlocks returns ErrDamaged if a block of the stream in a folder has a bad
// record before a good one. It looks at the blocks that were written since the
// engine last noted its state; at all of a bucket of keys, which are few, and
// where nobody would miss a value.
func examineBlocks(folder, stream string) error {
	blocks, err := blocksOf(filepath.Join(folder, "msgs"))
	if err != nil {
		return err
	}
	noted, err := os.Stat(filepath.Join(folder, "msgs", "index.db"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := noted == nil || strings.HasPrefix(stream, keyedStream(""))
	for i, number := range blocks {
		path := filepath.Join(folder, "msgs", strconv.Itoa(number)+".blk")
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if last := i == len(blocks)-1; all || last || !info.ModTime().Before(noted.ModTime()) {
			if err := examineBlock(path, stream, number, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// blocksOf returns the numbers of a stream's blocks, in order.
func blocksOf(folder string) ([]int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".blk"); ok {
			if n, err := strconv.Atoi(name); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func examineBlock(path, stream string, number int, last bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(data, []byte("cmp")) {
		return nil // compressed: not by us
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, number))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		return err
	}
	end, seq := goodRecords(data, h)
	if end == len(data) {
		return nil
	}
	if !last {
		return fmt.Errorf("%w: record at byte %d of %s, after message %d", ErrDamaged, end, path, seq)
	}
	for at := end + 1; at < len(data); at++ {
		if n := recordAt(data[at:], h, seq); n > 0 {
			return fmt.Errorf("%w: record at byte %d of %s, after message %d and before others", ErrDamaged, end, path, seq)
		}
	}
	return nil
}

// goodRecords returns where the good records at the start of a block end, and the
// sequence of the last.
func goodRecords(data []byte, h hash.Hash) (end int, seq uint64) {
	for end < len(data) {
		n := recordAt(data[end:], h, 0)
		if n == 0 {
			break
		}
		seq = max(seq, sequence(data[end:]))
		end += n
	}
	return end, seq
}

func sequence(record []byte) uint64 { return binary.LittleEndian.Uint64(record[4:]) &^ seqFlags }

// recordAt returns the length of the record that data begins with, 0 if it is not
// good. near, if not 0, is a sequence that it follows soon: where records may
// begin anywhere, that is cheaper to ask than the hash.
func recordAt(data []byte, h hash.Hash, near uint64) int {
	if len(data) < recordHead+recordHash {
		return 0
	}
	length := binary.LittleEndian.Uint32(data)
	hasHeaders := length&headersFlag != 0
	length &^= headersFlag
	subject := int(binary.LittleEndian.Uint16(data[20:]))
	start := recordHead + subject // of what follows the subject
	if hasHeaders {
		start += 4
	}
	if length > recordMax || int(length) > len(data) || start > int(length)-recordHash {
		return 0
	}
	if seq := sequence(data); near != 0 && (seq <= near || seq > near+1<<20) {
		return 0
	}
	if hasHeaders && !headersEnd(data[start-4:int(length)-recordHash]) {
		return 0
	}
	h.Reset()
	h.Write(data[4:20])
	h.Write(data[recordHead : recordHead+subject])
	h.Write(data[start : int(length)-recordHash])
	if !bytes.Equal(h.Sum(nil), data[int(length)-recordHash:length]) {
		return 0
	}
	return int(length)
}

// headersEnd reports whether headers are as long as they say, which the hash does
// not cover. They end with an empty line.
func headersEnd(data []byte) bool {
	n := int64(binary.LittleEndian.Uint32(data))
	return n <= int64(len(data)-4) && bytes.HasSuffix(data[4:4+n], []byte("\r\n\r\n"))
}
