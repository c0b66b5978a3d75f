/**
 * Keeps Tab inside `dialog`: from its last control it goes on to the first. A
 * modal dialog alone lets it go to the browser's own controls in between.
 */
export const trapFocus = (dialog: HTMLElement, event: KeyboardEvent): void => {
  const root = dialog.getRootNode() as ShadowRoot;
  const controls = Array.from(
    dialog.querySelectorAll<HTMLElement>('button, a[href], [tabindex="0"]'),
  ).filter((control) => !control.closest('[inert]'));
  const [first, last] = [controls[0], controls[controls.length - 1]];
  const edge = event.shiftKey ? first : last;
  const isInside = controls.includes(root.activeElement as HTMLElement);
  if (isInside && root.activeElement !== edge) return;
  event.preventDefault();
  (event.shiftKey ? last : first)?.focus();
};
