/**
 * Calls `done` once a reader can see the page: a prerendered page has been
 * activated, and one that was loaded hidden has come to the front. An ad that is
 * requested earlier is paid for by an advertiser whom nobody will see.
 */
export const whenShown = (doc: Document, done: () => void): void => {
  const events = ['prerenderingchange', 'visibilitychange'];
  const check = () => {
    if (doc.prerendering || doc.visibilityState === 'hidden') return;
    for (const event of events) doc.removeEventListener(event, check);
    done();
  };
  for (const event of events) doc.addEventListener(event, check);
  check();
};
