import {isRecord} from '../is-record.ts';
import {toHTTP} from '../magazine/read-creative.ts';
import {isId} from './read-pin.ts';
import type {Answer, Winner} from './types.ts';

/** A server that wants to be asked later than that is not asked again. */
const MAX_RETRY_MS = 30_000;

/**
 * What a batch's answer says. Addresses become absolute from `base`. A winner
 * that cannot be shown or told of is none; what is unknown is left out.
 */
export const readAnswer = (value: unknown, base: string): Answer => {
  const winners = new Map<string, Winner>();
  const removed: string[] = [];
  const answer = isRecord(value) ? value : {};
  for (const bid of list(answer.seatbid).filter(isRecord)) {
    if (!isId(bid.id)) continue;
    const dogear = isRecord(bid.dogear) ? bid.dogear : {};
    if (dogear.honored !== true && dogear.reason === 'creative_removed') removed.push(bid.id);
    const winner = readWinner(bid.winner, dogear.honored === true, base);
    if (winner) winners.set(bid.id, winner);
  }
  const retry = answer.retryInMs;
  return {
    winners,
    removed,
    stale: list(answer.stalePins).filter(isId),
    retryInMs: typeof retry === 'number' && retry > 0 && retry <= MAX_RETRY_MS ? retry : 0,
  };
};

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const readWinner = (value: unknown, honored: boolean, base: string): Winner | undefined => {
  if (!isRecord(value) || !isId(value.creativeId) || !isId(value.campaignId)) return undefined;
  const pages = list(value.pages)
    .filter(isRecord)
    .map((page) => toAbsolute(page, base));
  const [impUrl, viewUrl, clickUrl, ctaUrl] = (
    ['impUrl', 'viewUrl', 'clickUrl', 'ctaUrl'] as const
  ).map((key) => toHTTP(value[key], base));
  if (!pages.length || !impUrl || !viewUrl || !clickUrl || !ctaUrl) return undefined;
  const {creativeId, campaignId, foldToken, pinExpiresAt} = value;
  return {
    creativeId,
    campaignId,
    creative: {pages, landingUrl: toHTTP(value.landingUrl, base)},
    impUrl,
    viewUrl,
    clickUrl,
    ctaUrl,
    foldToken: typeof foldToken === 'string' ? foldToken : '',
    ...(typeof pinExpiresAt === 'number' && pinExpiresAt > 0 ? {pinExpiresAt} : {}),
    honored,
  };
};

/** A page as it came, whatever is in it, with its picture's address: the element reads the rest. */
const toAbsolute = (page: Record<string, unknown>, base: string): unknown => {
  const {image} = page;
  return isRecord(image) ? {...page, image: {...image, src: toHTTP(image.src, base)}} : page;
};
