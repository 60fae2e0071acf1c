"""The state of an object that a node hosts: what an instance changes in it is noted and can be taken back."""
