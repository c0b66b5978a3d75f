import {isRecord} from '../is-record.ts';

/** How long storage may keep anything waiting: WebKit's can hang for good. */
export const STORAGE_LIMIT_MS = 400;

/** A database, and the key path of each of its stores. */
export interface Schema {
  readonly name: string;
  readonly stores: Readonly<Record<string, string>>;
}

/**
 * Runs `work` in one transaction over all stores of a database and gives what it
 * found when the transaction has completed. Undefined when storage is absent,
 * blocked, full or foreign, or has not answered within 400 ms; never throws.
 *
 * The database is opened at whatever version it has: one of a later script, or
 * with more stores, is used as it is and never changed. It is closed at once, so
 * that no other tab waits for us. A write that is late still happens.
 */
export const transact = <T>(
  win: Window,
  {name, stores}: Schema,
  mode: IDBTransactionMode,
  work: (transaction: IDBTransaction) => () => T,
): Promise<T | undefined> =>
  new Promise((resolve) => {
    let late = false;
    const end = (value?: T) => {
      clearTimeout(timer);
      resolve(value);
    };
    const timer = setTimeout(() => {
      late = true;
      resolve(undefined);
    }, STORAGE_LIMIT_MS);
    try {
      // Where storage is blocked the property itself throws.
      const open = win.indexedDB.open(name);
      // Without a version this comes for a database that was not there.
      open.onupgradeneeded = () => {
        for (const store of Object.keys(stores)) {
          open.result.createObjectStore(store, {keyPath: stores[store]!});
        }
      };
      open.onerror = (event) => {
        event.preventDefault(); // else Firefox reports it to the page
        end();
      };
      open.onsuccess = () => {
        const db = open.result;
        if (late && mode === 'readonly') db.close();
        else run(db, Object.keys(stores), mode, work, end);
      };
    } catch {
      end();
    }
  });

const run = <T>(
  db: IDBDatabase,
  stores: string[],
  mode: IDBTransactionMode,
  work: (transaction: IDBTransaction) => () => T,
  end: (value?: T) => void,
): void => {
  const close = (value?: T) => {
    db.close();
    end(value);
  };
  try {
    const transaction = db.transaction(stores, mode);
    const found = work(transaction);
    transaction.oncomplete = () => close(found());
    transaction.onabort = () => close(); // a full disk
    transaction.onerror = (event) => event.preventDefault();
  } catch {
    close(); // a database of somebody else's
  }
};

/** The rows of a store; none where storage fails. */
export const readRows = async (win: Window, schema: Schema, store: string): Promise<unknown[]> =>
  (await transact(win, schema, 'readonly', (transaction) => {
    const all = transaction.objectStore(store).getAll();
    return () => all.result as unknown[];
  })) ?? [];

/** Changes a store. */
export const changeRows = (
  win: Window,
  schema: Schema,
  store: string,
  change: (store: IDBObjectStore) => void,
): Promise<unknown> =>
  transact(win, schema, 'readwrite', (transaction) => {
    change(transaction.objectStore(store));
    return () => true;
  });

/** Deletes the rows that are `gone`, as they are in the transaction of `store`. */
export const deleteRows = (
  store: IDBObjectStore,
  gone: (row: Record<string, unknown>) => boolean,
): void => {
  const all = store.getAll();
  all.onsuccess = () => {
    for (const row of (all.result as unknown[]).filter(isRecord)) {
      if (gone(row)) store.delete(row[store.keyPath as string] as IDBValidKey);
    }
  };
};
