// A double of Google Publisher Tag for unit tests: what of its public reference
// (https://developers.google.com/publisher-tag/reference) the client relies on,
// and no more. Each behaviour cites the entry it comes from. It never renders by
// itself: the test says when, with render(). It does not know lazy loading, and
// drops a display() that comes before enableServices().

type Targeting = Record<string, string | string[] | null>;

/** Which interface the page's version of GPT has. */
export type Interface = 'config' | 'methods';

export interface GPTDouble {
  /** To be put where window.googletag is. */
  readonly googletag: typeof googletag;
  /** The ad requests so far, each with the slots in it and the targeting they carried. */
  readonly requests: {div: string; targeting: Targeting}[][];
  /** Fires slotRenderEnded for the slot on this element. */
  render(div: string, options?: {isEmpty: boolean}): void;
  /** The targeting that the slot has by now. */
  targetingOf(div: string): Targeting;
  readonly singleRequest: boolean;
}

interface SlotState {
  readonly div: string;
  readonly slot: googletag.Slot;
  readonly targeting: Targeting;
  displayed: boolean;
  fetched: boolean;
}

export const createGPTDouble = (kind: Interface): GPTDouble => {
  const slots: SlotState[] = [];
  const listeners: {type: string; listener: (event: unknown) => void}[] = [];
  const requests: GPTDouble['requests'] = [];
  const page = {initialLoadDisabled: false, singleRequest: false, enabled: false};

  const dispatch = (type: string, event: unknown) => {
    for (const entry of listeners) if (entry.type === type) entry.listener(event);
  };
  const stateOf = (div: string) => {
    const state = slots.find((s) => s.div === div);
    if (!state) throw new Error(`no slot on ${div}`);
    return state;
  };
  const fetch = (states: SlotState[]) => {
    if (!states.length) return;
    // PubAdsService.display: "a snapshot of the slot and page state is created".
    requests.push(states.map(({div, targeting}) => ({div, targeting: {...targeting}})));
    for (const state of states) {
      state.fetched = true;
      // events.SlotRequestedEvent: "fired when an ad has been requested for a particular slot".
      dispatch('slotRequested', {slot: state.slot});
    }
  };

  const apply = (targeting: Targeting, changes: Targeting) => {
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) delete targeting[key];
      else targeting[key] = value;
    }
  };

  const createSlot = (div: string): SlotState => {
    const targeting: Targeting = {};
    const slot = {
      addService: () => slot,
      getSlotElementId: () => div,
      // Slot.getResponseInformation: "null if the slot has no ad".
      getResponseInformation: () => null,
      ...(kind === 'config'
        ? {
            // config.SlotSettingsConfig.targeting: several calls add up, null clears a key.
            setConfig: (config: {targeting: Targeting}) => apply(targeting, config.targeting),
            getConfig: () => ({targeting: {...targeting}}),
          }
        : {
            setTargeting: (key: string, value: string) => apply(targeting, {[key]: value}),
            clearTargeting: (key: string) => apply(targeting, {[key]: null}),
            // Slot.getTargeting: a list of values, empty for a key that is not set.
            getTargeting: (key: string) => {
              const value = targeting[key] ?? [];
              return Array.isArray(value) ? value : [value];
            },
          }),
    };
    return {
      div,
      slot: slot as unknown as googletag.Slot,
      targeting,
      displayed: false,
      fetched: false,
    };
  };

  const service = {
    addEventListener: (type: string, listener: (event: unknown) => void) => {
      listeners.push({type, listener});
    },
    getSlots: () => slots.map(({slot}) => slot),
    // PubAdsService.refresh: "Fetches and displays new ads for specific or all slots".
    refresh: (some?: googletag.Slot[]) =>
      fetch(slots.filter(({slot}) => !some || some.includes(slot))),
    ...(kind === 'methods' && {
      disableInitialLoad: () => {
        page.initialLoadDisabled = true;
      },
      isInitialLoadDisabled: () => page.initialLoadDisabled,
      enableSingleRequest: () => {
        page.singleRequest = true;
      },
    }),
  };

  const gpt = {
    // CommandArray.push: run at once when GPT is loaded.
    cmd: {push: (command: () => void) => command()},
    pubads: () => service,
    // defineSlot: "null if a slot cannot be created"; it cannot on a div that has one.
    defineSlot: (_path: string, _size: unknown, div: string) => {
      if (slots.some((s) => s.div === div)) return null;
      const state = createSlot(div);
      slots.push(state);
      return state.slot;
    },
    // destroySlots: "removes all related objects and references"; the div may be used again.
    destroySlots: (some: googletag.Slot[]) => {
      for (const slot of some) {
        const index = slots.findIndex((state) => state.slot === slot);
        if (index >= 0) slots.splice(index, 1);
      }
      return true;
    },
    enableServices: () => {
      page.enabled = true;
    },
    display: (div: string) => {
      const state = stateOf(div);
      // "Each ad slot should only be displayed once per page."
      if (state.displayed || !page.enabled) return;
      state.displayed = true;
      // PageSettingsConfig.disableInitialLoad: display() then registers slots only.
      if (page.initialLoadDisabled || state.fetched) return;
      // "If SRA is being used, all unfetched ad slots … will be fetched at once."
      fetch(page.singleRequest ? slots.filter((s) => !s.fetched) : [state]);
    },
    ...(kind === 'config' && {
      setConfig: (config: {singleRequest?: boolean; disableInitialLoad?: boolean}) => {
        if (config.singleRequest !== undefined) page.singleRequest = config.singleRequest;
        if (config.disableInitialLoad) page.initialLoadDisabled = true;
      },
      getConfig: () => ({disableInitialLoad: page.initialLoadDisabled}),
    }),
  };

  return {
    googletag: gpt as unknown as typeof googletag,
    requests,
    render: (div, {isEmpty} = {isEmpty: false}) =>
      dispatch('slotRenderEnded', {slot: stateOf(div).slot, isEmpty}),
    targetingOf: (div) => ({...stateOf(div).targeting}),
    get singleRequest() {
      return page.singleRequest;
    },
  };
};
