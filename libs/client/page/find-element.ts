/** Returns the first element for a selector, which the page is known to have. */
export function findElement<Kind extends Element>(
  selector: string,
  kind: new () => Kind,
  within: ParentNode = document,
): Kind {
  const found = within.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`The page has no ${selector}.`);
  return found;
}

/** Returns a new element with a text or with children. */
export function newElement<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  children: string | readonly Node[] = '',
  className = '',
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  if (className !== '') element.className = className;
  element.append(...(typeof children === 'string' ? [children] : children));
  return element;
}
