const DAY_MS = 86_400_000;

/**
 * When a pin that is folded now ends: with its campaign, or after a week where
 * that is open-ended; in any case after 90 days. Meeting it again does not
 * prolong it.
 */
export const expiresAt = (foldedAt: number, pinExpiresAt?: number): number =>
  Math.min(pinExpiresAt ?? foldedAt + 7 * DAY_MS, foldedAt + 90 * DAY_MS);
