import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {createDocumentDouble} from '../document-double.ts';
import type {TCData} from '../page.ts';
import {watchPurpose1} from './watch-purpose-1.ts';

const yes: TCData = {eventStatus: 'tcloaded', gdprApplies: true, purpose: {consents: {1: true}}};
const no: TCData = {
  eventStatus: 'useractioncomplete',
  gdprApplies: true,
  purpose: {consents: {2: true}},
};

const setUp = ({cmp = true, skip = ''} = {}) => {
  const {win, parse, load} = createDocumentDouble();
  let answer: (data: TCData) => void = () => {};
  const addCMP = () => {
    win.__tcfapi = (_command, _version, hear) => {
      answer = (data) => hear(data, true);
    };
  };
  if (cmp) addCMP();
  const refused = vi.fn();
  const purpose1 = watchPurpose1(win, skip, refused);
  return {purpose1, refused, parse, load, addCMP, answer: (data: TCData) => answer(data)};
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('without a CMP counts are kept', async () => {
  const {purpose1, load} = setUp({cmp: false});
  expect(await purpose1.mayRead()).toBe(true);
  load();
  expect(await purpose1.mayKeep()).toBe(true);
});

test('without a CMP they are not where the edge has read no permission', async () => {
  const {purpose1, load} = setUp({cmp: false, skip: 'no_consent'});
  expect(await purpose1.mayRead()).toBe(false);
  load();
  expect(await purpose1.mayKeep()).toBe(false);
});

test.each<[string, TCData, boolean]>([
  ['a yes to Purpose 1', yes, true],
  ['a no', no, false],
  ['a reader whom it does not concern', {gdprApplies: false}, true],
])('%s is heard', async (_, data, want) => {
  const {purpose1, answer, refused} = setUp();
  const may = purpose1.mayRead();
  answer(data);
  expect([await may, await purpose1.mayKeep()]).toEqual([want, want]);
  expect(refused.mock.calls.length > 0).toBe(!want);
});

test('a CMP that is slow is not waited for', async () => {
  const {purpose1} = setUp();
  const may = purpose1.mayRead();
  await vi.advanceTimersByTimeAsync(400);
  expect(await may).toBe(false);
});

test('a reader who is being asked is not waited for at all', async () => {
  const {purpose1, answer} = setUp();
  const may = purpose1.mayRead();
  answer({eventStatus: 'cmpuishown', gdprApplies: true});
  expect(await may).toBe(false);
});

test('a CMP that comes after the batch decides what is kept', async () => {
  const {purpose1, addCMP, parse, answer, refused} = setUp({cmp: false});
  expect(await purpose1.mayRead()).toBe(true);
  addCMP();
  parse();
  answer(no);
  expect(await purpose1.mayKeep()).toBe(false);
  expect(refused.mock.calls).toHaveLength(1);
});

test('a withdrawal is heard as well', async () => {
  const {purpose1, answer, refused} = setUp();
  answer(yes);
  expect(await purpose1.mayKeep()).toBe(true);
  answer(no);
  expect(refused.mock.calls).toHaveLength(1);
  expect(await purpose1.mayKeep()).toBe(false);
});
