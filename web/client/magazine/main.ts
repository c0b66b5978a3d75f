// Defines <deckle-magazine>. Loaded twice, the first definition stays.
import {MagazineElement} from './magazine-element.ts';

if (!customElements.get('deckle-magazine')) {
  customElements.define('deckle-magazine', MagazineElement);
}
