/** The listeners of a key source; a listener must not throw. */
export interface KeyChange {
  onChange(listener: () => void): () => void;
  emit(): void;
}

export function createKeyChange(): KeyChange {
  const listeners = new Set<() => void>();
  return {
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    emit() {
      for (const listener of listeners) listener();
    },
  };
}
