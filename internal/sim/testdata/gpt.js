// What a page does with GPT, case by case; each returns [got, want]. They begin with
// a fresh page that has the divs a, b and c, and its double loaded.

const unit = '/123/unit';
const until = async (test) => {
  while (!test()) await new Promise((done) => setTimeout(done, 5));
};

// All events so far, as "type div".
const watch = () => {
  const events = [];
  for (const type of ['slotRequested', 'slotResponseReceived', 'slotRenderEnded', 'slotOnload', 'impressionViewable']) {
    googletag.pubads().addEventListener(type, (e) => events.push(`${type} ${e.slot.getSlotElementId()}`));
  }
  return events;
};
const count = (events, type) => events.filter((e) => e.startsWith(type)).length;
const define = (div, path = unit) => googletag.defineSlot(path, [300, 250], div).addService(googletag.pubads());
const requests = () => performance.getEntriesByType('resource').filter((r) => r.name.includes('/gampad/ads'));
const lastRequest = () => new URL(requests().at(-1).name).searchParams;
const filled = (id) => document.getElementById(id).querySelector('iframe') !== null;

const cases = {
  'commands run in order, and after one that throws': () => {
    const order = [];
    googletag.cmd.push(() => order.push(1), () => { throw new Error('on purpose'); }, () => order.push(2));
    googletag.cmd.push(() => order.push(3));
    return [[order, googletag.apiReady], [[1, 2, 3], true]];
  },

  'the events of a slot come in order': async () => {
    const events = watch();
    define('a');
    googletag.enableServices();
    googletag.display('a');
    await until(() => count(events, 'impressionViewable'));
    return [events, ['slotRequested a', 'slotResponseReceived a', 'slotRenderEnded a', 'slotOnload a', 'impressionViewable a']];
  },

  'without single request each display asks for its slot': async () => {
    const events = watch();
    define('a');
    define('b');
    googletag.enableServices();
    googletag.display('a');
    googletag.display('b');
    await until(() => count(events, 'slotRenderEnded') === 2);
    return [requests().length, 2];
  },

  'with single request the first display asks for all, and each renders when it is displayed': async () => {
    const events = watch();
    define('a');
    define('b');
    const enabled = googletag.pubads().enableSingleRequest();
    googletag.enableServices();
    googletag.display('a');
    await until(() => count(events, 'slotResponseReceived') === 2);
    const before = [filled('a'), filled('b')];
    googletag.display('b');
    await until(() => count(events, 'slotRenderEnded') === 2);
    return [[enabled, requests().length, before, filled('b')], [true, 1, [true, false], true]];
  },

  'single request by setConfig': async () => {
    const events = watch();
    define('a');
    define('b');
    googletag.setConfig({singleRequest: true});
    googletag.enableServices();
    googletag.display('a');
    googletag.display('b');
    await until(() => count(events, 'slotRenderEnded') === 2);
    return [requests().length, 1];
  },

  'initial load disabled: display registers, refresh asks': async () => {
    const events = watch();
    const a = define('a');
    define('b');
    googletag.pubads().disableInitialLoad();
    googletag.enableServices();
    googletag.display('a');
    const quiet = events.length;
    googletag.pubads().refresh(); // b has not been displayed
    await until(() => count(events, 'slotRenderEnded'));
    googletag.pubads().refresh([a]);
    await until(() => count(events, 'slotRenderEnded') === 2);
    return [[quiet, count(events, 'slotRequested'), googletag.pubads().isInitialLoadDisabled()], [0, 2, true]];
  },

  'initial load disabled by setConfig': () => {
    googletag.setConfig({disableInitialLoad: true});
    return [[googletag.getConfig('disableInitialLoad'), googletag.pubads().isInitialLoadDisabled()], [{disableInitialLoad: true}, true]];
  },

  'what comes after enableServices is too late': () => {
    googletag.enableServices();
    googletag.pubads().disableInitialLoad();
    return [[googletag.pubads().enableSingleRequest(), googletag.pubads().isInitialLoadDisabled(), googletag.pubadsReady], [false, false, true]];
  },

  'targeting of slot and page goes into the request, the slot over the page': async () => {
    const a = define('a');
    a.setTargeting('k', 'slot').setTargeting('list', ['1', '2']);
    googletag.pubads().setTargeting('k', 'page').setTargeting('p', 'q');
    a.setTargeting('number', 5); // not a string: dropped
    googletag.enableServices();
    googletag.display('a');
    await until(() => requests().length);
    const q = lastRequest();
    return [[q.get('scp'), q.get('cust_params'), q.get('iu'), q.get('sz')], ['k=slot&list=1%2C2', 'k=page&p=q', unit, '300x250']];
  },

  'targeting is read back, cleared by key and as a whole': () => {
    const a = define('a').setTargeting('x', 'y').setTargeting('z', ['1', '2']);
    const before = [a.getTargeting('x'), a.getTargeting('none'), a.getTargetingKeys()];
    a.clearTargeting('x');
    const between = a.getTargetingKeys();
    a.clearTargeting();
    return [[before, between, a.getTargetingKeys()], [[['y'], [], ['x', 'z']], ['z'], []]];
  },

  'targeting by setConfig: null clears, getConfig is frozen lists': () => {
    const a = define('a').setConfig({targeting: {x: 'y', z: ['1', '2']}});
    const all = a.getConfig('targeting');
    a.setConfig({targeting: {x: null}});
    const rest = a.getConfig(['targeting']);
    a.setConfig({targeting: null});
    return [[all, Object.isFrozen(all.targeting), rest, a.getConfig('targeting').targeting === undefined],
      [{targeting: {x: ['y'], z: ['1', '2']}}, true, {targeting: {z: ['1', '2']}}, true]];
  },

  'a listener that sets targeting at slotRequested is heard': async () => {
    define('a');
    googletag.pubads().addEventListener('slotRequested', (e) => e.slot.setTargeting('late', '1'));
    googletag.enableServices();
    googletag.display('a');
    await until(() => requests().length);
    return [lastRequest().get('scp'), 'late=1'];
  },

  'a removed listener, and one that throws, disturb nobody': async () => {
    const events = watch();
    const gone = () => events.push('gone');
    googletag.pubads().addEventListener('slotRequested', () => { throw new Error('on purpose'); });
    googletag.pubads().addEventListener('slotRequested', gone);
    googletag.pubads().removeEventListener('slotRequested', gone);
    define('a');
    googletag.enableServices();
    googletag.display('a');
    await until(() => count(events, 'slotRenderEnded'));
    return [events.includes('gone'), false];
  },

  'an empty slot is empty, and collapses where asked': async () => {
    const events = [];
    googletag.pubads().addEventListener('slotRenderEnded', (e) => events.push([e.isEmpty, e.size, e.lineItemId]));
    const a = define('a', '/123/empty').setCollapseEmptyDiv(true);
    googletag.enableServices();
    googletag.display('a');
    await until(() => events.length);
    return [[events[0], document.getElementById('a').style.display, a.getResponseInformation()], [[true, null, null], 'none', null]];
  },

  'a slot that starts collapsed opens for its ad': async () => {
    const events = watch();
    define('a');
    googletag.pubads().collapseEmptyDivs(true);
    googletag.enableServices();
    const before = document.getElementById('a').style.display;
    googletag.display('a');
    await until(() => count(events, 'slotRenderEnded'));
    return [[before, document.getElementById('a').style.display], ['none', '']];
  },

  'one div has one slot, until it is destroyed': async () => {
    const events = watch();
    const a = define('a');
    const second = googletag.defineSlot(unit, [300, 250], 'a');
    googletag.enableServices();
    googletag.display(a);
    await until(() => count(events, 'slotRenderEnded'));
    const destroyed = googletag.destroySlots([a]);
    return [[second, destroyed, filled('a'), googletag.pubads().getSlots().length, googletag.defineSlot(unit, [300, 250], 'a') !== null],
      [null, true, false, 0, true]];
  },

  'the response for a destroyed slot is dropped': async () => {
    const events = watch();
    const a = define('a');
    define('b');
    googletag.enableServices();
    googletag.display('a');
    googletag.destroySlots([a]);
    googletag.display('b');
    await until(() => count(events, 'slotRenderEnded'));
    return [[filled('a'), filled('b')], [false, true]];
  },

  'a cleared slot is blank and unfetched': async () => {
    const events = watch();
    const a = define('a');
    googletag.enableServices();
    googletag.display('a');
    await until(() => count(events, 'slotRenderEnded'));
    const information = a.getResponseInformation().lineItemId > 0;
    const cleared = googletag.pubads().clear([a]);
    return [[information, cleared, filled('a'), a.getResponseInformation()], [true, true, false, null]];
  },

  'what cannot be a slot is null': () => [
    [['no-slash', [300, 250]], ['/123/x', 'wide'], ['/x/y', [1, 1]]].map(([path, size]) => googletag.defineSlot(path, size, 'b')),
    [null, null, null],
  ],

  'display without a slot or an element does nothing': () => {
    define('not-in-the-page');
    googletag.enableServices();
    googletag.display('c');
    googletag.display('not-in-the-page');
    return [requests().length, 0];
  },

  'loaded twice, the first one stays': async () => {
    const cmd = googletag.cmd;
    const again = document.createElement('script');
    again.src = document.querySelector('script[src]').src + '?again';
    document.head.append(again);
    await new Promise((done) => again.addEventListener('load', done));
    return [googletag.cmd === cmd, true];
  },

  'the frame has another origin than the page': async () => {
    const events = watch();
    define('a');
    googletag.enableServices();
    googletag.display('a');
    await until(() => count(events, 'slotOnload'));
    const frame = document.querySelector('#a iframe');
    return [[frame.contentDocument, frame.width, frame.height], [null, '300', '250']];
  },
};

const run = async (name) => {
  const [got, want] = await cases[name]();
  return {got: got ?? null, want};
};
