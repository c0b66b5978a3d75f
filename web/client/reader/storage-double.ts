// Doubles of a browser's storage, for unit tests.
import {IDBFactory} from 'fake-indexeddb';

/** A window with nothing but storage, and the rows that a store holds. */
export const createStorage = (indexedDB: unknown = new IDBFactory()) => {
  const win = {indexedDB, location: {href: 'https://site.example/a'}} as unknown as Window;
  const open = (name: string, version?: number, upgrade?: (db: IDBDatabase) => void) =>
    new Promise<IDBDatabase>((resolve, reject) => {
      const request = win.indexedDB.open(name, version);
      request.onupgradeneeded = () => upgrade?.(request.result);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const rows = async (name: string, store: string): Promise<unknown[]> => {
    const db = await open(name);
    const all = db.transaction(store).objectStore(store).getAll();
    return new Promise((resolve) => {
      all.onsuccess = () => {
        db.close();
        resolve(all.result);
      };
    });
  };
  return {win, open, rows};
};

/** Storage that fails, each in one of the ways in which browsers' do. */
export const FAILING: Readonly<Record<string, unknown>> = {
  'there is none': undefined,
  'it is blocked': {
    open() {
      throw new DOMException('blocked', 'SecurityError');
    },
  },
  'it hangs': {open: () => ({})},
  'it cannot be opened': {
    open() {
      const request: Record<string, () => void> = {};
      setTimeout(() => (request.onerror as (event: object) => void)?.({preventDefault() {}}));
      return request;
    },
  },
};
