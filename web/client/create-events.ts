import {safely} from './safely.ts';

/** What happens on a page that its analytics may want to know. */
export interface Events {
  /** Calls `listener` for every event of that name from now on. */
  on(name: string, listener: (detail: unknown) => void): void;
  emit(name: string, detail: unknown): void;
}

/** A listener that throws has no effect on the others, nor on us. */
export const createEvents = (): Events => {
  const listeners: [string, (detail: unknown) => void][] = [];
  return {
    on(name, listener) {
      listeners.push([name, safely(listener)]);
    },
    emit(name, detail) {
      for (const [wanted, listener] of listeners) if (wanted === name) listener(detail);
    },
  };
};
