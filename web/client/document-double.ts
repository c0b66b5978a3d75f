// A double of a document that is being loaded, for unit tests: the loading
// states of HTML section 13.2.7 "The end" and of prerendering, without elements.

export interface DocumentDouble {
  readonly win: Window;
  /** The parser has stopped: readyState "interactive", then DOMContentLoaded. */
  parse(): void;
  /** Everything has loaded: readyState "complete", then load. */
  load(): void;
  /** Sets what the page visibility and prerendering APIs say, and fires their event. */
  show(state: {prerendering?: boolean; visibilityState?: 'visible' | 'hidden'}): void;
}

export const createDocumentDouble = (): DocumentDouble => {
  const doc = Object.assign(new EventTarget(), {
    readyState: 'loading',
    visibilityState: 'visible',
    prerendering: false,
    getElementsByTagName: () => [],
  });
  const navigation = {domContentLoadedEventStart: 0};
  const win = Object.assign(new EventTarget(), {
    document: doc,
    performance: {getEntriesByType: () => [navigation]},
  });
  const become = (readyState: string) => {
    doc.readyState = readyState;
    doc.dispatchEvent(new Event('readystatechange'));
  };
  return {
    win: win as unknown as Window,
    parse() {
      become('interactive');
      navigation.domContentLoadedEventStart = 1;
      doc.dispatchEvent(new Event('DOMContentLoaded'));
    },
    load() {
      become('complete');
      win.dispatchEvent(new Event('load'));
    },
    show(state) {
      Object.assign(doc, state);
      doc.dispatchEvent(
        new Event(state.prerendering === undefined ? 'visibilitychange' : 'prerenderingchange'),
      );
    },
  };
};
