import {describe, expect, test} from 'vitest';
import {createDocumentDouble} from './document-double.ts';
import type {TCData} from './page.ts';
import {whenPermitted} from './when-permitted.ts';

const YES = {1: true, 2: true};

const setUp = (skip: string) => {
  const page = createDocumentDouble();
  const seen = {done: 0, yes: 0, refused: 0};
  /** A CMP appears; returns how it calls its listener. */
  const installCMP = () => {
    const listeners: ((data: TCData | null, success: boolean) => void)[] = [];
    page.win.__tcfapi = (command, version, callback) => {
      expect([command, version]).toEqual(['addEventListener', 2]);
      listeners.push(callback);
    };
    return (data: TCData | null, success = true) => {
      expect(listeners).toHaveLength(1);
      listeners[0]!(data, success);
    };
  };
  const begin = () =>
    whenPermitted(page.win, skip, {
      done(yes) {
        seen.done++;
        if (yes) seen.yes++;
      },
      heard(yes) {
        if (!yes) seen.refused++;
      },
    });
  return {page, seen, installCMP, begin};
};

describe('no_consent', () => {
  // IAB TCF v2 CMP API, addEventListener: eventStatus is tcloaded, cmpuishown or useractioncomplete.
  test.each<[string, TCData | null, boolean, number, number]>([
    [
      'a choice made before',
      {eventStatus: 'tcloaded', gdprApplies: true, purpose: {consents: YES}},
      true,
      1,
      0,
    ],
    [
      'a yes',
      {eventStatus: 'useractioncomplete', gdprApplies: true, purpose: {consents: YES}},
      true,
      1,
      0,
    ],
    [
      'a no',
      {eventStatus: 'useractioncomplete', gdprApplies: true, purpose: {consents: {}}},
      true,
      1,
      1,
    ],
    [
      'a yes to storage only',
      {eventStatus: 'tcloaded', gdprApplies: true, purpose: {consents: {1: true}}},
      true,
      1,
      1,
    ],
    ['no place of GDPR', {gdprApplies: false}, true, 1, 0],
    ['an open dialogue', {eventStatus: 'cmpuishown', gdprApplies: true}, true, 0, 0],
    ['a CMP that fails', null, false, 0, 0],
    ['a failure with data', {eventStatus: 'tcloaded', gdprApplies: false}, false, 0, 0],
  ])('%s', (_, data, success, done, refused) => {
    const {seen, installCMP, begin} = setUp('no_consent');
    const hear = installCMP();
    begin();
    expect(seen).toEqual({done: 0, yes: 0, refused: 0});
    hear(data, success);
    expect(seen).toEqual({done, yes: done - refused, refused});
  });

  test('a CMP that comes with a deferred script is heard', () => {
    const {page, seen, installCMP, begin} = setUp('no_consent');
    begin();
    const hear = installCMP();
    page.parse();
    page.load();
    expect(seen.done).toBe(0);
    hear({eventStatus: 'useractioncomplete', gdprApplies: true, purpose: {consents: YES}});
    expect(seen.done).toBe(1);
  });

  test('where there is no CMP by load, nobody is waited for', () => {
    const {page, seen, begin} = setUp('no_consent');
    begin();
    page.parse();
    expect(seen.done).toBe(0);
    page.load();
    expect(seen).toEqual({done: 1, yes: 0, refused: 0}); // nobody has said yes
  });

  test('a CMP without an API that we know can tell us', () => {
    const {seen, begin} = setUp('no_consent');
    const answer = begin();
    answer(true);
    expect(seen).toEqual({done: 1, yes: 1, refused: 0});
    answer(false);
    expect(seen.refused).toBe(1);
  });
});

describe('prefetch', () => {
  test('a prerendered page waits for its activation', () => {
    const {page, seen, begin} = setUp('prefetch');
    page.show({prerendering: true});
    begin();
    page.show({visibilityState: 'visible'});
    expect(seen.done).toBe(0);
    page.show({prerendering: false});
    expect(seen.done).toBe(1);
    page.show({visibilityState: 'visible'});
    expect(seen.done).toBe(1);
  });

  test('a prefetched page that opens in the background waits until it is seen', () => {
    const {page, seen, begin} = setUp('prefetch');
    page.show({visibilityState: 'hidden'});
    begin();
    expect(seen.done).toBe(0);
    page.show({visibilityState: 'visible'});
    expect(seen.done).toBe(1);
  });

  test('one that is seen waits for nothing', () => {
    const {seen, begin} = setUp('prefetch');
    begin();
    expect(seen.done).toBe(1);
  });
});

test('where the gate did not skip, only a later refusal is listened for', () => {
  const {seen, installCMP, begin} = setUp('');
  const hear = installCMP();
  begin();
  expect(seen).toEqual({done: 1, yes: 1, refused: 0});
  hear({eventStatus: 'useractioncomplete', gdprApplies: true, purpose: {consents: {1: true}}});
  expect(seen).toEqual({done: 1, yes: 1, refused: 1});
});
