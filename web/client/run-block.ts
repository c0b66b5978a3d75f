/**
 * What both runners do: reads the data block `name` directly before the script
 * that is running, removes it and the script, and gives what it held to `use`.
 * Where the block is not ours, or the client has read it before us, only the
 * script goes.
 */
export const runBlock = (
  name: string,
  use: (data: Record<string, unknown>, nonce: string) => void,
): void => {
  try {
    const runner = document.currentScript as HTMLScriptElement;
    const block = runner.previousElementSibling as HTMLElement | null;
    runner.remove();
    if (block?.dataset.deckle !== name) return;
    block.remove();
    use(JSON.parse(block.textContent!), runner.nonce);
  } catch {
    // The page goes on without ads.
  }
};
