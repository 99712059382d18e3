"""Writers: HTML, JSON, JUnit, Markdown and terminal."""
