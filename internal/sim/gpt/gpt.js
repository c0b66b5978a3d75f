// A test double of Google Publisher Tag: its public interface, in front of the
// ad server of package sim. It is written from Google's public reference alone;
// README.md beside it lists what it does not do and where the reference is silent.
//
// REF below is https://developers.google.com/publisher-tag/reference
(() => {
  'use strict';

  // The page makes the namespace with its command queue before we are loaded, and keeps
  // a reference to it: REF#googletag.cmd
  const googletag = (window.googletag = window.googletag || {});
  if (googletag.apiReady) return; // loaded twice: the first one stays

  const server = new URL(document.currentScript.src).origin;
  const olderInterface = googletag.simOlderInterface === true;
  const warn = (...args) => console.warn('[GPT double]', ...args);

  // ── Targeting: key → list of strings ──────────────────────────────────────────

  // REF#googletag.Slot.setTargeting, REF#googletag.config.SlotSettingsConfig.targeting
  class Targeting {
    constructor() {
      this.values = new Map();
    }

    // A value is a string or a list of strings; anything else is ignored with a warning.
    set(key, value) {
      const list = Array.isArray(value) ? value : [value];
      if (typeof key !== 'string' || key === '' || !list.every((v) => typeof v === 'string')) {
        warn('targeting ignored: not a string or a list of strings', key, value);
        return;
      }
      this.values.set(key, [...list]);
    }

    clear(key) {
      if (key === undefined) this.values.clear();
      else this.values.delete(key);
    }

    get(key) {
      return [...(this.values.get(key) || [])];
    }

    keys() {
      return [...this.values.keys()];
    }

    // null clears one key, or all of them: REF#googletag.config.PageSettingsConfig.targeting
    configure(map) {
      if (map === null) {
        this.clear();
        return;
      }
      for (const [key, value] of Object.entries(map)) {
        if (value === null || value === undefined) this.clear(key);
        else this.set(key, value);
      }
    }

    // The frozen copy that getConfig returns; undefined when nothing is set.
    config() {
      if (this.values.size === 0) return undefined;
      return Object.freeze(Object.fromEntries(this.keys().map((k) => [k, Object.freeze(this.get(k))])));
    }

    // "k=v1,v2&k2=v": the form of scp and cust_params in Google's ad tags,
    // https://support.google.com/admanager/answer/1068325
    query() {
      const q = new URLSearchParams();
      for (const [key, list] of this.values) if (list.length > 0) q.set(key, list.join(','));
      return q.toString();
    }
  }

  // ── State of the page ─────────────────────────────────────────────────────────

  const page = {
    slots: [], // all defined slots, in the order of their definition
    servicesEnabled: false,
    singleRequest: false,
    initialLoadDisabled: false,
    collapse: 'DISABLED',
    centering: false,
    frameTitle: '3rd party ad content',
    targeting: new Targeting(),
    listeners: new Map(), // event type → set of functions
    frames: 0, // how many have been made
    correlator: newCorrelator(),
  };

  function newCorrelator() {
    return String(Math.floor(Math.random() * 2 ** 52));
  }

  // ── Slots ─────────────────────────────────────────────────────────────────────

  const COLLAPSE = ['DISABLED', 'BEFORE_FETCH', 'ON_NO_FILL'];

  // REF#googletag.Slot
  class Slot {
    constructor(adUnitPath, sizes, divId) {
      // What GPT keeps to itself, behind one property that nobody uses by accident.
      Object.defineProperty(this, '_sim', {
        value: {
          adUnitPath,
          sizes,
          divId,
          targeting: new Targeting(),
          collapse: null, // null: the page's
          inService: false,
          displayed: false,
          fetched: false,
          request: 0, // counts requests: the response of an older one is dropped
          response: null,
          rendered: false,
          destroyed: false,
          unwatch: () => {},
        },
      });
    }

    addService(service) {
      if (service === pubads && !this._sim.inService) {
        this._sim.inService = true;
        service._slots.push(this);
      }
      return this;
    }

    getAdUnitPath() {
      return this._sim.adUnitPath;
    }

    getSlotElementId() {
      return this._sim.divId;
    }

    setTargeting(key, value) {
      this._sim.targeting.set(key, value);
      return this;
    }

    clearTargeting(key) {
      this._sim.targeting.clear(key);
      return this;
    }

    getTargeting(key) {
      return this._sim.targeting.get(key);
    }

    getTargetingKeys() {
      return this._sim.targeting.keys();
    }

    // "the same as calling setTargeting for all the key values": here null clears nothing,
    // REF#googletag.Slot.updateTargetingFromMap
    updateTargetingFromMap(map) {
      for (const [key, value] of Object.entries(map)) this._sim.targeting.set(key, value);
      return this;
    }

    setCollapseEmptyDiv(collapse, beforeFetch) {
      this._sim.collapse = !collapse ? 'DISABLED' : beforeFetch ? 'BEFORE_FETCH' : 'ON_NO_FILL';
      return this;
    }

    // null while the slot has no ad: REF#googletag.Slot.getResponseInformation
    getResponseInformation() {
      const {rendered, response} = this._sim;
      if (!rendered || !response || response.empty) return null;
      const {advertiserId, campaignId, creativeId, lineItemId} = response;
      return {advertiserId, campaignId, creativeId, lineItemId, creativeTemplateId: null};
    }

    // REF#googletag.Slot.setConfig
    setConfig(config) {
      for (const [name, value] of Object.entries(config)) {
        if (name === 'targeting') this._sim.targeting.configure(value);
        else if (name === 'collapseDiv' && (value === null || COLLAPSE.includes(value))) this._sim.collapse = value;
        else warn('Slot.setConfig: not done by the double, or not valid', name, value);
      }
      return this;
    }

    // REF#googletag.Slot.getConfig
    getConfig(keys) {
      const config = {};
      for (const key of [keys].flat()) if (key === 'targeting') config.targeting = this._sim.targeting.config();
      return Object.freeze(config);
    }
  }

  // Sizes as "300x250" from [300, 250], [[300, 250], 'fluid'] or 'fluid':
  // https://developers.google.com/publisher-tag/guides/ad-sizes
  function sizeList(size) {
    const isPair = (s) => Array.isArray(s) && s.length === 2 && s.every((n) => typeof n === 'number');
    const list = isPair(size) || typeof size === 'string' ? [size] : Array.isArray(size) ? size : [];
    const valid = list.every((s) => isPair(s) || s === 'fluid' || (Array.isArray(s) && s[0] === 'fluid'));
    return valid ? list.map((s) => (isPair(s) ? s.join('x') : 'fluid')) : null;
  }

  // "The newly created slot, or null if a slot cannot be created": REF#googletag.defineSlot
  function defineSlot(adUnitPath, size, divId) {
    const sizes = sizeList(size);
    if (typeof adUnitPath !== 'string' || !/^\/[0-9,]+\//.test(adUnitPath) || !sizes) {
      warn('defineSlot: ad unit path or size is not valid', adUnitPath, size);
      return null;
    }
    const id = divId || `gpt_unit_${adUnitPath}_${page.slots.length}`;
    if (page.slots.some((s) => s.getSlotElementId() === id)) {
      warn('defineSlot: the div has a slot already', id);
      return null;
    }
    const slot = new Slot(adUnitPath, sizes, id);
    page.slots.push(slot);
    return slot;
  }

  // Clears the ad, forgets the slot and frees its div: REF#googletag.destroySlots
  function destroySlots(slots) {
    const doomed = page.slots.filter((s) => !slots || slots.includes(s));
    for (const slot of doomed) {
      empty(slot);
      slot._sim.destroyed = true;
    }
    page.slots = page.slots.filter((s) => !doomed.includes(s));
    pubads._slots = pubads._slots.filter((s) => !doomed.includes(s));
    return doomed.length > 0;
  }

  // ── The Publisher Ads service ─────────────────────────────────────────────────

  // REF#googletag.PubAdsService
  const pubads = {
    _slots: [],

    getName: () => 'publisher_ads', // serviceName of the events
    getSlots: () => [...pubads._slots],

    setTargeting(key, value) {
      page.targeting.set(key, value);
      return pubads;
    },
    clearTargeting(key) {
      page.targeting.clear(key);
      return pubads;
    },
    getTargeting: (key) => page.targeting.get(key),
    getTargetingKeys: () => page.targeting.keys(),

    // "should be set prior to enabling the service": REF#googletag.PubAdsService.disableInitialLoad
    disableInitialLoad() {
      beforeServices('disableInitialLoad', () => (page.initialLoadDisabled = true));
    },
    isInitialLoadDisabled: () => page.initialLoadDisabled,

    // false when it comes after enableServices: REF#googletag.PubAdsService.enableSingleRequest
    enableSingleRequest: () => beforeServices('enableSingleRequest', () => (page.singleRequest = true)),
    collapseEmptyDivs: (beforeFetch) =>
      beforeServices('collapseEmptyDivs', () => (page.collapse = beforeFetch ? 'BEFORE_FETCH' : 'ON_NO_FILL')),
    setCentering(center) {
      page.centering = center === true;
    },

    // "must be preceded by a call to display": REF#googletag.PubAdsService.refresh
    refresh(slots, options) {
      if (!(options && options.changeCorrelator === false)) page.correlator = newCorrelator();
      const wanted = pubads._slots.filter((s) => !slots || slots.includes(s));
      const ready = wanted.filter((s) => s._sim.displayed);
      if (ready.length < wanted.length) warn('refresh: slots that have not been displayed are left out');
      if (page.servicesEnabled) fetchSlots(ready);
    },

    // "replaces them with blank content … marked as unfetched": REF#googletag.PubAdsService.clear
    clear(slots) {
      const cleared = pubads._slots.filter((s) => !slots || slots.includes(s));
      for (const slot of cleared) {
        empty(slot);
        slot._sim.fetched = false;
      }
      return cleared.length > 0;
    },

    // REF#googletag.Service.addEventListener
    addEventListener(type, listener) {
      if (!page.listeners.has(type)) page.listeners.set(type, new Set());
      page.listeners.get(type).add(listener);
      return pubads;
    },
    removeEventListener(type, listener) {
      const listeners = page.listeners.get(type);
      if (listeners) listeners.delete(listener);
    },

    setPrivacySettings: () => pubads, // accepted; the ad server of the double has no use for it
    updateCorrelator() {
      page.correlator = newCorrelator();
      return pubads;
    },
  };

  // Settings that are too late once the service is enabled.
  function beforeServices(name, set) {
    if (page.servicesEnabled) {
      warn(`${name}: has no effect after enableServices`);
      return false;
    }
    set();
    return true;
  }

  // A listener that throws disturbs neither the others nor us.
  function emit(type, slot, fields) {
    for (const listener of [...(page.listeners.get(type) || [])]) {
      try {
        listener({slot, serviceName: pubads.getName(), ...fields});
      } catch (e) {
        console.error(e);
      }
    }
  }

  // ── Requesting ────────────────────────────────────────────────────────────────

  // REF#googletag.enableServices
  function enableServices() {
    if (page.servicesEnabled) return;
    page.servicesEnabled = true;
    googletag.pubadsReady = true;
    for (const slot of page.slots) if (collapseOf(slot) === 'BEFORE_FETCH') hide(slot, true);
    loadInitially(page.slots.filter((s) => s._sim.displayed));
  }

  // Registers a slot, and requests its ad unless that is disabled: REF#googletag.display
  function display(divOrSlot) {
    const slot = findSlot(divOrSlot);
    if (!slot || !slot._sim.inService) {
      warn('display: no slot with a service is defined for it', divOrSlot);
      return;
    }
    if (!document.getElementById(slot.getSlotElementId())) {
      warn('display: the element is not in the page', slot.getSlotElementId());
      return;
    }
    if (slot._sim.displayed) return; // "should only be displayed once per page"
    slot._sim.displayed = true;
    if (slot._sim.response) render(slot); // fetched along with another slot
    if (page.servicesEnabled) loadInitially([slot]);
  }

  function findSlot(divOrSlot) {
    if (divOrSlot instanceof Slot) return page.slots.find((s) => s === divOrSlot);
    const id = typeof divOrSlot === 'string' ? divOrSlot : divOrSlot && divOrSlot.id;
    return page.slots.find((s) => s.getSlotElementId() === id);
  }

  // With single request "all unfetched ad slots at the time this method is called will be
  // fetched at once": REF#googletag.display
  function loadInitially(displayed) {
    if (page.initialLoadDisabled || displayed.length === 0) return;
    const slots = page.singleRequest ? pubads._slots : displayed;
    fetchSlots(slots.filter((s) => !s._sim.fetched));
  }

  // One request for all slots with single request, else one for each.
  function fetchSlots(slots) {
    if (slots.length === 0) return;
    for (const batch of page.singleRequest ? [slots] : slots.map((s) => [s])) request(batch);
  }

  // Every slot fires slotRequested, batched or not: REF#googletag.events.SlotRequestedEvent.
  // Targeting is read after it, so that listeners may still set it.
  function request(batch) {
    const numbers = batch.map((slot) => {
      slot._sim.fetched = true;
      return ++slot._sim.request;
    });
    for (const slot of batch) emit('slotRequested', slot);
    const stillWanted = (slot, i) => !slot._sim.destroyed && slot._sim.request === numbers[i];
    fetch(adRequest(batch), {credentials: 'omit'})
      .then((r) => (r.ok ? r.json() : Promise.reject(new Error(`ad server: ${r.status}`))))
      .catch((e) => {
        warn(String(e)); // no ad server, no ads
        return batch.map(() => ({empty: true}));
      })
      .then((responses) => {
        batch.forEach((slot, i) => {
          if (!stillWanted(slot, i)) return;
          slot._sim.response = responses[i];
          emit('slotResponseReceived', slot);
          if (slot._sim.displayed) render(slot);
        });
      });
  }

  function adRequest(batch) {
    const q = new URLSearchParams({
      correlator: page.correlator,
      url: location.href,
      cust_params: page.targeting.query(),
      sra: page.singleRequest ? '1' : '0',
    });
    for (const slot of batch) {
      q.append('iu', slot.getAdUnitPath());
      q.append('sz', slot._sim.sizes.join('|'));
      q.append('scp', slot._sim.targeting.query());
    }
    return `${server}/gampad/ads?${q}`;
  }

  // ── Rendering ─────────────────────────────────────────────────────────────────

  const collapseOf = (slot) => slot._sim.collapse || page.collapse;

  function hide(slot, hidden) {
    const div = document.getElementById(slot.getSlotElementId());
    if (div) div.style.display = hidden ? 'none' : '';
  }

  // Takes the ad out of a slot's div.
  function empty(slot) {
    slot._sim.unwatch();
    slot._sim.rendered = false;
    slot._sim.response = null;
    const div = document.getElementById(slot.getSlotElementId());
    if (div) div.textContent = '';
  }

  // REF#googletag.events.SlotRenderEndedEvent
  function render(slot) {
    const {response, rendered} = slot._sim;
    const div = document.getElementById(slot.getSlotElementId());
    if (!div) {
      warn('the element has gone from the page', slot.getSlotElementId());
      return;
    }
    slot._sim.unwatch();
    div.textContent = '';
    slot._sim.rendered = !response.empty;
    if (response.empty) {
      if (collapseOf(slot) !== 'DISABLED') hide(slot, true);
      emit('slotRenderEnded', slot, renderFields(response, rendered));
      return;
    }
    if (collapseOf(slot) !== 'DISABLED') hide(slot, false);
    div.append(frameFor(slot, response));
    emit('slotRenderEnded', slot, renderFields(response, true));
  }

  function renderFields(response, changed) {
    const id = (value) => (response.empty ? null : value);
    return {
      isEmpty: response.empty,
      slotContentChanged: changed,
      size: id(response.size),
      advertiserId: id(response.advertiserId),
      campaignId: id(response.campaignId),
      creativeId: id(response.creativeId),
      creativeTemplateId: null,
      labelIds: null,
      lineItemId: id(response.lineItemId),
      sourceAgnosticCreativeId: id(response.creativeId),
      sourceAgnosticLineItemId: id(response.lineItemId),
      isBackfill: false,
      yieldGroupIds: null,
      companyIds: null,
      responseIdentifier: id(String(response.creativeId)),
    };
  }

  // A frame of another origin than the page, in a container of its own, as SafeFrame has
  // it: https://support.google.com/admanager/answer/6023110
  function frameFor(slot, response) {
    const id = `google_ads_iframe_${slot.getAdUnitPath()}_${page.frames++}`;
    const container = document.createElement('div');
    container.id = `${id}__container__`;
    container.style.cssText = `border:0;margin:${page.centering ? 'auto' : '0'};width:${response.size[0]}px;height:${response.size[1]}px`;
    const frame = document.createElement('iframe');
    frame.id = id;
    frame.name = id;
    frame.title = page.frameTitle;
    frame.width = response.size[0];
    frame.height = response.size[1];
    frame.scrolling = 'no';
    frame.style.cssText = 'border:0;vertical-align:bottom';
    // The creative's iframe fires its load event: REF#googletag.events.SlotOnloadEvent
    frame.addEventListener('load', () => emit('slotOnload', slot), {once: true});
    frame.src = server + response.frame;
    container.append(frame);
    slot._sim.unwatch = whenViewable(frame, () => emit('impressionViewable', slot));
    return container;
  }

  // Half of the ad, a third of a large one, in view for one second without a break:
  // https://support.google.com/admanager/answer/4524488
  function whenViewable(frame, done) {
    const ratio = frame.width * frame.height >= 242500 ? 0.3 : 0.5;
    let timer;
    const observer = new IntersectionObserver(
      (entries) => {
        clearTimeout(timer);
        if (entries[entries.length - 1].intersectionRatio < ratio) return;
        timer = setTimeout(() => {
          observer.disconnect();
          done();
        }, 1000);
      },
      {threshold: [ratio]},
    );
    observer.observe(frame);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }

  // ── Settings of the page ──────────────────────────────────────────────────────

  // Unknown properties and invalid values are ignored with a warning:
  // https://developers.google.com/publisher-tag/guides/config-migration
  const settings = {
    targeting: (v) => page.targeting.configure(v),
    singleRequest: (v) => beforeServices('singleRequest', () => (page.singleRequest = v === true)),
    disableInitialLoad: (v) => beforeServices('disableInitialLoad', () => (page.initialLoadDisabled = v === true)),
    collapseDiv: (v) => {
      page.collapse = COLLAPSE.includes(v) ? v : 'DISABLED';
    },
    centering: (v) => {
      page.centering = v === true;
    },
  };

  // REF#googletag.setConfig
  function setConfig(config) {
    for (const [name, value] of Object.entries(config)) {
      if (Object.hasOwn(settings, name)) settings[name](value);
      else warn('setConfig: not done by the double, or not known', name);
    }
  }

  // REF#googletag.getConfig
  function getConfig(keys) {
    const config = {};
    for (const key of [keys].flat()) {
      if (key === 'targeting') config.targeting = page.targeting.config();
      if (key === 'disableInitialLoad') config.disableInitialLoad = page.initialLoadDisabled;
    }
    return Object.freeze(config);
  }

  // ── The namespace ─────────────────────────────────────────────────────────────

  // Runs commands in order as they are pushed: REF#googletag.CommandArray
  class CommandArray {
    constructor() {
      this.done = 0;
    }
    push(...commands) {
      for (const command of commands) {
        this.done++;
        try {
          command.call(globalThis);
        } catch (e) {
          console.error('[GPT double] a command threw', e);
        }
      }
      return this.done;
    }
  }

  Object.assign(googletag, {
    pubads: () => pubads,
    defineSlot,
    destroySlots,
    display,
    enableServices,
    getVersion: () => 'sim',
    setAdIframeTitle: (title) => {
      page.frameTitle = String(title);
    },
  });
  if (olderInterface) {
    delete Slot.prototype.setConfig;
    delete Slot.prototype.getConfig;
  } else {
    Object.assign(googletag, {setConfig, getConfig});
  }
  googletag.apiReady = true;

  const queued = googletag.cmd || [];
  googletag.cmd = new CommandArray();
  googletag.cmd.push(...queued);
})();
