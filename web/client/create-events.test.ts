import {expect, test} from 'vitest';
import {createEvents} from './create-events.ts';

test('each listener hears its own event, whatever the others do', () => {
  const events = createEvents();
  const heard: unknown[] = [];
  events.on('bidWon', () => {
    throw new Error('the page’s own');
  });
  events.on('bidWon', (detail) => heard.push(detail));
  events.on('adRendered', (detail) => heard.push(detail));
  events.emit('bidWon', {adId: 'AD1'});
  events.emit('auctionEnd', {});
  expect(heard).toEqual([{adId: 'AD1'}]);
});
