package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of the engine's answers that nats.go has no name for.
const (
	codeResourceLimits      jetstream.ErrorCode = 10002
	codeNoResources         jetstream.ErrorCode = 10023
	codeNoMemory            jetstream.ErrorCode = 10028
	codeNoStorage           jetstream.ErrorCode = 10047
	codeMessageTooLarge     jetstream.ErrorCode = 10054
	codeDuplicateInProcess  jetstream.ErrorCode = 10158
	codeStoreFailed         jetstream.ErrorCode = 10077
	codeWrongLastSequence   jetstream.ErrorCode = 10071 // of one node
	codeWrongLastSequenceRn jetstream.ErrorCode = 10164 // of several
	codeSequenceUnavailable jetstream.ErrorCode = 10163
	codeReplicasAlone       jetstream.ErrorCode = 10074
)

// fault makes an error of the engine one that a caller can decide on. ctx is the
// call's.
func fault(ctx context.Context, operation string, err error) error {
	if err == nil {
		return nil
	}
	kind := kindOf(err)
	switch {
	case kind == nil:
		return fmt.Errorf("%s: %w", operation, err)
	case errors.Is(kind, ErrUnavailable) && ctx.Err() != nil:
		return fmt.Errorf("%s: %w: %w", operation, kind, context.Cause(ctx))
	default:
		return fmt.Errorf("%s: %w: %w", operation, kind, err)
	}
}

// kindOf returns the sentinel of an error of the engine; nil if there is none.
func kindOf(err error) error {
	if errors.Is(err, nats.ErrMaxPayload) {
		return ErrTooLarge
	}
	answer, ok := errors.AsType[jetstream.JetStreamError](err)
	if !ok || answer.APIError() == nil {
		return ErrUnavailable // no answer: no responder, no connection, no time
	}
	return kindOfAnswer(answer.APIError())
}

func kindOfAnswer(e *jetstream.APIError) error {
	switch e.ErrorCode {
	case codeWrongLastSequence, codeWrongLastSequenceRn:
		return ErrConflict
	case codeMessageTooLarge:
		return ErrTooLarge
	case jetstream.JSErrCodeMessageNotFound:
		return ErrNotFound
	case codeResourceLimits, codeNoResources, codeNoMemory, codeNoStorage:
		return ErrFull
	case codeDuplicateInProcess, codeSequenceUnavailable:
		return ErrUnavailable
	case codeStoreFailed:
		// These are decided before anything is written; the rest is the disk's.
		switch {
		case strings.Contains(e.Description, "maximum bytes"), strings.Contains(e.Description, "maximum messages"):
			return ErrFull
		case strings.Contains(e.Description, "too large"):
			return ErrTooLarge
		}
	}
	if e.Code >= 500 || e.Code == 408 || e.Code == 429 {
		return ErrUnavailable
	}
	return nil
}
