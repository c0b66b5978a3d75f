import {request} from './request.ts';
import {toJSON} from './to-json.ts';
import type {ReaderSettings, Stage} from './types.ts';

/** Reports where a page fails: a stage, and a reason in [a-z0-9_]. */
export type Heart = (stage: Stage, reason: string) => void;

/**
 * Creates what reports failures to the dashboard: one a stage and page view, with
 * nothing about the reader. Whether anyone hears it makes no difference.
 */
export const createHeart = ({pub, base}: ReaderSettings): Heart => {
  const told = new Set<Stage>();
  return (stage, reason) => {
    if (told.has(stage)) return;
    told.add(stage);
    void request(`${base}/v1/heartbeat`, toJSON({pub, stage, reason}));
  };
};
