/** The file that has <deckle-magazine>; a constant of the build. */
declare const MAGAZINE_PATH: string;

/**
 * Loads the element's module. import() needs no Trusted Type, and runs with the
 * nonce of the script that calls it.
 */
export const loadElement = (base: string): Promise<unknown> => import(base + MAGAZINE_PATH);
