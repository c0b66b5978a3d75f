import {expect, test} from 'vitest';
import {parseMessage} from './parse-message.ts';

// As prebid-universal-creative 1.17.2 sends them (src/renderingManager.js, src/messaging.js).
test('the two messages of Prebid Universal Creative', () => {
  const request = {message: 'Prebid Request', adId: 'AD1', adServerDomain: 'https://x.example'};
  expect(parseMessage(JSON.stringify(request))).toEqual({message: 'Prebid Request', adId: 'AD1'});
  const event = {
    adId: 'AD1',
    message: 'Prebid Event',
    event: 'adRenderFailed',
    info: {reason: 'x'},
  };
  expect(parseMessage(JSON.stringify(event))).toEqual({
    message: 'Prebid Event',
    adId: 'AD1',
    event: 'adRenderFailed',
  });
});

test.each([
  [undefined],
  [{message: 'Prebid Request', adId: 'AD1'}],
  [''],
  ['{"message":"Prebid Request"'],
  ['["Prebid Request"]'],
  ['null "Prebid '],
  [JSON.stringify({message: 'Prebid Request', adId: 7})],
  [JSON.stringify({message: 'Prebid Native', adId: 'AD1'})],
  [JSON.stringify({message: 'Prebid Event', adId: 'AD1', event: '__proto__'})],
  [JSON.stringify({message: 'Prebid Request', adId: 'A'.repeat(5000)})],
])('%j is none of them', (data) => {
  expect(parseMessage(data)).toBeUndefined();
});
